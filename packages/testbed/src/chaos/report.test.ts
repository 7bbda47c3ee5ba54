import { expect, test } from 'vitest';
import { checkStory } from '../history/checker.js';
import { Script } from '../history/script.js';
import { tellStory } from '../history/story.js';
import { markdownTable, rowOf } from './report.js';

test('a case becomes a line of the table', () => {
  const script = new Script()
    .hold('w1', { token: 10, asked: 0, answered: 1, until: 100 })
    .add(98, 'w1', { type: 'lost', name: 'a', owner: 'w1/10', reason: 'expired' })
    .hold('w2', { token: 11, asked: 5, queuedAt: 6, answered: 250, until: 500, released: 300 })
    .ungranted('w3', { asked: 7, ended: 20, outcome: 'unknown' })
    .fencedWrite(260, 'w2', 11, true)
    .fencedWrite(270, 'w1', 10, false)
    .fault('sigstop', 50, 200, 1000, ['w1']);
  const story = tellStory(script.events);
  const check = checkStory(story);
  const rest = { rounds: 1, verdict: check.verdict, troubles: [], folder: '' };
  const row = rowOf({ backend: 'sqlite', fault: 'sigstop', check, story, ...rest });
  expect(row).toEqual({
    backend: 'sqlite',
    fault: 'sigstop',
    verdict: 'pass',
    injections: 1,
    grants: 2,
    unknown: 1,
    lost: 1,
    violations: 0,
    refused: 1,
    updatesLost: 0,
    inversions: 0,
    longestRecovery: 50,
  });
  const [head, rule, line] = markdownTable([row]).split('\n');
  expect(head).toMatch(/^\| backend \| fault +\| injections \| grants \| losses signalled \| violations \|/);
  expect(rule).toMatch(/^\|-+\|-+\|-+:\|/);
  expect(line).toMatch(/^\| sqlite {2}\| sigstop \| +1 \| +2 \| +1 \| +0 \| +50 \|/);
});
