import { describeQuorum } from './quorum-kit.js';

describeQuorum(3, 0);
describeQuorum(3, 1);
