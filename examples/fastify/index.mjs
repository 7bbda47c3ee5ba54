import { claim } from '../instances.mjs';
import { startApp } from './app.mjs';

/** Stands for the database that the instances share. */
const orders = new Map();
const apps = await Promise.all([startApp(orders), startApp(orders)]);

const post = (number) =>
  fetch(`${apps[number % 2].url}/orders/${number % 3}/lines`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ line: number }),
  });

const requests = Array.from({ length: 18 }, (_, number) => number);
const responses = await Promise.all(requests.map(post));
await Promise.all(apps.map((app) => app.close()));

console.log('Two instances, three orders, 18 requests at once:');
claim(
  'every request was served',
  responses.every(({ ok }) => ok),
);
const kept = [...orders.values()].flat();
claim(`no line was lost (${kept.length} of ${requests.length})`, kept.length === requests.length);
