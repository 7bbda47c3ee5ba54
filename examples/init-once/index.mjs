import { claim, withInstances } from '../instances.mjs';

await withInstances(new URL('./instance.mjs', import.meta.url), 4, async (ask) => {
  const first = await ask('start');
  console.log(`Four instances start: ${first.map(({ outcome }) => outcome).join(', ')}`);
  claim('one set the resource up', first.filter(({ outcome }) => outcome === 'set it up').length === 1);
  claim(
    'nobody went on before it was complete',
    first.every(({ countries }) => countries === 3),
  );

  const second = await ask('start again');
  claim(
    'the next start finds it there',
    second.every(({ outcome }) => outcome === 'was there'),
  );
});
