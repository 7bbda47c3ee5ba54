import { describe, expect, test } from 'vitest';
import { Script } from '../history/script.js';
import { tellStory } from '../history/story.js';
import { choosePanels } from './panels.js';
import { drawTimeline } from './timeline.js';

const story = (script: Script) => tellStory(script.events);

/** Two that overlap by 10 ms, with a fault across. */
const clash = (): Script =>
  new Script()
    .hold('w1', { token: 1_700_000_000_000_010, asked: 0, answered: 1, until: 500 })
    .hold('w2', { token: 1_700_000_000_000_020, asked: 5, answered: 490, until: 900, released: 800 })
    .fault('sigstop', 100, 300, 1000, ['w1']);

describe('the picture', () => {
  test('names the locks, the processes, the owners by their ends, the tokens and the faults', () => {
    const picture = drawTimeline(story(clash()), { title: 'a run' });
    for (const text of ['>a<', '>w1 0010<', '>w2 0020<', '>+0<', '>+10<', '>sigstop w1<'])
      expect(picture).toContain(text);
    expect(picture).toContain('token 1700000000000010');
  });

  test('marks the time for which two held, and only that', () => {
    expect(
      drawTimeline(story(clash()), { title: 'a run' }).match(/fill="url\(#clash\)" stroke/g),
    ).toHaveLength(1);
    const sound = new Script().hold('w1', { token: 1, asked: 0, answered: 1, until: 500, released: 300 });
    // The legend explains the mark all the same.
    expect(drawTimeline(story(sound), { title: 'a run' }).match(/url\(#clash\)/g)).toHaveLength(1);
  });

  test('shows for how long the killed may still block others', () => {
    const killed = new Script()
      .hold('w1', { token: 1, asked: 0, answered: 1, until: 500 })
      .add(200, 'testbed', { type: 'process-end', of: 'w1', how: 'killed' })
      .hold('w2', { token: 2, asked: 3, answered: 510, until: 900, released: 800 });
    expect(drawTimeline(story(killed), { title: 'a run' }).match(/url\(#dead\)/g)).toHaveLength(2);
  });

  test('is XML whatever the names', () => {
    const name = '<&"\u0001\ud83d\ude00';
    const odd = new Script().hold('w1', { name, token: 1, asked: 0, answered: 1, until: 500, released: 400 });
    const picture = drawTimeline(story(odd), { title: 'a & b < c', subtitle: '"quoted"' });
    expect(picture).toContain('&lt;&amp;&quot;\ufffd\u{1f600}');
    expect(picture).not.toContain('a & b');
    expect(picture).not.toContain('\u0001');
  });

  test('of a long run shows a window around a fault of each kind, the slowest to recover from', () => {
    const script = new Script();
    for (let turn = 0; turn < 400; turn += 1) {
      const asked = 100 * turn;
      script.hold('w1', { token: turn, asked, answered: asked + 1, until: asked + 99, released: asked + 60 });
    }
    script
      .fault('kill9', 5_000, 5_000, 1000, [])
      .fault('restart', 12_000, 13_000, 1000)
      .fault('restart', 25_000, 27_000, 1000);
    const panels = choosePanels(story(script), 4);
    expect(panels.map(({ title }) => title)).toEqual([
      'kill9: 4.6 s to 5.4 s of the run',
      'restart: 24.6 s to 27.4 s of the run',
    ]);
    expect(choosePanels(story(script), 1)).toHaveLength(1);
  });

  test('shows first what was broken', () => {
    const [panel] = choosePanels(story(clash()), 1);
    expect(panel).toMatchObject({ title: expect.stringContaining('two-holders on a') });
  });
});
