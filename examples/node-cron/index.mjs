import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { claim, withInstances } from '../instances.mjs';

await withInstances(new URL('./instance.mjs', import.meta.url), 3, async (ask, folder) => {
  const seen = (await ask(3)).flat();
  const ran = readFileSync(join(folder, 'runs.log'), 'utf8').trim().split('\n');
  const ticks = new Set(seen);
  console.log(
    `Three instances saw ${seen.length} strokes of ${ticks.size} ticks; the job ran ${ran.length} times.`,
  );
  claim('no tick’s job ran twice', new Set(ran).size === ran.length);
  claim(
    'every tick’s job ran',
    [...ticks].every((tick) => ran.includes(tick)),
  );
});
