import { describeQuorum } from './quorum-kit.js';

describeQuorum(5, 0);
describeQuorum(5, 1);
describeQuorum(5, 2);
