import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FaultProxy, startProxy } from './proxy.js';

/** Answers each line with `re:` and the line, and remembers what it got. */
interface Echo {
  readonly server: Server;
  readonly lines: string[];
  readonly sockets: Socket[];
}

let echo: Echo;
let proxy: FaultProxy;
const clients: Client[] = [];

beforeEach(async () => {
  echo = await startEcho();
  const { port } = echo.server.address() as AddressInfo;
  proxy = await startProxy({ target: { host: '127.0.0.1', port, url: `redis://127.0.0.1:${port}/0` } });
});

afterEach(async () => {
  await proxy.stop();
  for (const client of clients.splice(0)) client.socket.destroy();
  for (const socket of echo.sockets) socket.destroy();
  echo.server.close();
});

test('without faults everything passes, ends included', async () => {
  const client = await open();
  expect(await client.ask('one')).toBe('re:one');
  client.socket.end();
  await once(client.socket, 'close');
  expect(echo.lines).toEqual(['one']);
  expect(proxy.url).toBe(`redis://${proxy.address}/0`);
  expect(proxy.bytes).toEqual({ up: 4, down: 7 });
});

test('a delay delays each direction, keeps the order, and ends when healed', async () => {
  const client = await open();
  const delay = proxy.delay({ up: 100, down: 100, jitter: 50 });
  const begin = performance.now();
  client.send('one');
  client.send('two');
  expect(await client.next()).toBe('re:one');
  expect(performance.now() - begin).toBeGreaterThanOrEqual(199);
  expect(await client.next()).toBe('re:two');
  delay.heal();
  expect(await client.ask('three')).toBe('re:three');
  expect(echo.lines).toEqual(['one', 'two', 'three']);
});

test('refusal meets new connections only, and ends when healed', async () => {
  const client = await open();
  await proxy.refuse();
  await expect(open()).rejects.toThrow('ECONNREFUSED');
  expect(await client.ask('one')).toBe('re:one');
  await proxy.heal();
  expect(await (await open()).ask('two')).toBe('re:two');
});

test('a reset is seen on both sides', async () => {
  const client = await open();
  await client.ask('one');
  const server = closed(echo.sockets[0]);
  proxy.reset();
  expect(await client.closed).toBe('ECONNRESET');
  expect(await server).toBe('ECONNRESET');
});

test('an orderly end is no error', async () => {
  const client = await open();
  await client.ask('one');
  proxy.end();
  expect(await client.closed).toBe('end');
});

test('a black hole swallows nothing for ever: what it held arrives when it heals', async () => {
  const client = await open();
  await client.ask('one');
  const hole = proxy.blackHole();
  client.send('two');
  const other = await open();
  other.send('three');
  await expect.poll(() => proxy.bytes.up).toBe('one\ntwo\nthree\n'.length);
  expect(echo.lines).toEqual(['one']);
  hole.heal();
  expect(await client.next()).toBe('re:two');
  expect(await other.next()).toBe('re:three');
});

test('a black hole in one direction lets the request through', async () => {
  const client = await open();
  using hole = proxy.blackHole('down');
  client.send('one');
  await expect.poll(() => echo.lines).toEqual(['one']);
  expect(client.received).toEqual([]);
  hole.heal();
  expect(await client.next()).toBe('re:one');
});

test('a black hole can be for some connections', async () => {
  const [first, second] = [await open(), await open()];
  proxy.blackHole('both', { only: ({ opening }) => opening.includes('first') });
  first.send('first');
  expect(await second.ask('second')).toBe('re:second');
  expect(echo.lines).toEqual(['second']);
});

test('a dropped answer: the server has the request, the client a reset, and the rule is spent', async () => {
  const client = await open();
  const rule = proxy.dropAnswerTo('chosen');
  expect(await client.ask('other')).toBe('re:other');
  client.send('chosen');
  expect(await client.closed).toBe('ECONNRESET');
  await rule.hit;
  expect(echo.lines).toEqual(['other', 'chosen']);
  expect(await (await open()).ask('chosen')).toBe('re:chosen');
  expect(rule.hits).toBe(1);
});

test('a dropped answer can leave the connection open and silent', async () => {
  const client = await open();
  const rule = proxy.dropAnswerTo('chosen', { afterwards: 'mute' });
  client.send('chosen');
  await rule.hit;
  client.send('later');
  await expect.poll(() => echo.lines).toEqual(['chosen', 'later']);
  expect(client.received).toEqual([]);
  expect(client.socket.readyState).toBe('open');
});

test('a dropped answer can be the one that a matcher names', async () => {
  const client = await open();
  const rule = proxy.dropAnswerTo('one', { answer: 're:two', afterwards: 'end' });
  client.send('one');
  await expect.poll(() => proxy.bytes.down).toBe('re:one\n'.length);
  expect(rule.hits).toBe(0);
  client.send('two');
  expect(await client.closed).toBe('end');
  expect(client.received).toEqual([]);
});

test('a dropped request never arrives', async () => {
  const client = await open();
  const rule = proxy.dropRequest(/chos.n/, { times: 2 });
  client.send('chosen');
  expect(await client.closed).toBe('ECONNRESET');
  const second = await open();
  second.send('chosen');
  expect(await second.closed).toBe('ECONNRESET');
  expect(await (await open()).ask('chosen')).toBe('re:chosen');
  expect(rule.hits).toBe(2);
  expect(echo.lines).toEqual(['chosen']);
});

test('a held request arrives after one that was sent later', async () => {
  const [slow, quick] = [await open(), await open()];
  const rule = proxy.holdRequest('slow');
  slow.send('slow');
  await rule.hit;
  slow.send('behind');
  expect(await quick.ask('quick')).toBe('re:quick');
  expect(echo.lines).toEqual(['quick']);
  rule.heal();
  expect(await slow.next()).toBe('re:slow');
  expect(await slow.next()).toBe('re:behind');
});

test('a request that was held when its client left still arrives', async () => {
  const client = await open();
  const rule = proxy.holdRequest('ghost');
  client.send('ghost');
  await rule.hit;
  client.socket.destroy();
  rule.heal();
  await expect.poll(() => echo.lines).toEqual(['ghost']);
});

test('a held answer keeps those behind it', async () => {
  const client = await open();
  const rule = proxy.holdAnswerTo('one');
  client.send('one');
  await rule.hit;
  client.send('two');
  await expect.poll(() => echo.lines).toEqual(['one', 'two']);
  expect(client.received).toEqual([]);
  rule.heal();
  expect(await client.next()).toBe('re:one');
  expect(await client.next()).toBe('re:two');
});

test('a cut request arrives in part', async () => {
  const client = await open();
  const rule = proxy.cutRequest('chosen', { bytes: 3, afterwards: 'end' });
  const remainder = new Promise<string>((resolve) => echo.server.once('cut', resolve));
  client.send('chosen');
  await rule.hit;
  expect(await remainder).toBe('cho');
  expect(echo.lines).toEqual([]);
});

test('a cut answer arrives in part', async () => {
  const client = await open();
  proxy.cutAnswerTo('chosen', { bytes: 4 });
  client.send('chosen');
  await client.closed;
  expect(client.remainder).toBe('re:c');
  expect(echo.lines).toEqual(['chosen']);
});

test('a swallowed message leaves the connection as it was', async () => {
  const client = await open();
  const rule = proxy.swallow('re:lost');
  client.send('lost');
  await rule.hit;
  expect(await client.ask('next')).toBe('re:next');
  expect(client.received).toEqual([]);
});

test('an observer counts and changes nothing', async () => {
  const client = await open();
  const observer = proxy.observe('counted');
  await client.ask('counted');
  await client.ask('other');
  await client.ask('counted');
  expect(observer.hits).toBe(2);
});

test('healing takes rules back that have not struck', async () => {
  const client = await open();
  const rule = proxy.dropAnswerTo('one');
  await proxy.heal();
  expect(await client.ask('one')).toBe('re:one');
  expect(rule.hits).toBe(0);
});

test('a server that is not there shows as a reset', async () => {
  echo.server.close();
  const client = await open();
  expect(await client.closed).toBe('ECONNRESET');
});

test('stopping ends every connection, in a black hole too', async () => {
  const client = await open();
  await client.ask('one');
  proxy.blackHole();
  client.send('two');
  await expect.poll(() => proxy.bytes.up).toBe(8);
  await proxy.stop();
  expect(await client.closed).toBe('ECONNRESET');
  await expect(open()).rejects.toThrow('ECONNREFUSED');
});

interface Client {
  readonly socket: Socket;
  /** Lines that were received and not asked for yet. */
  readonly received: string[];
  readonly remainder: string;
  /** `end`, or the code of the error. */
  readonly closed: Promise<string>;
  send(line: string): void;
  next(): Promise<string>;
  ask(line: string): Promise<string>;
}

async function open(): Promise<Client> {
  const socket = connect({ host: proxy.host, port: proxy.port, noDelay: true });
  await once(socket, 'connect');
  const received: string[] = [];
  const lines = readLines(socket, (line) => {
    received.push(line);
    socket.emit('line');
  });
  const client: Client = {
    socket,
    received,
    closed: closed(socket),
    get remainder() {
      return lines.remainder;
    },
    send: (line) => void socket.write(`${line}\n`),
    async next() {
      if (received.length === 0) await once(socket, 'line');
      return received.shift() ?? '';
    },
    ask(line) {
      this.send(line);
      return this.next();
    },
  };
  clients.push(client);
  return client;
}

async function startEcho(): Promise<Echo> {
  const lines: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const reader = readLines(socket, (line) => {
      lines.push(line);
      socket.write(`re:${line}\n`);
    });
    socket.on('error', () => undefined);
    socket.once('end', () => server.emit('cut', reader.remainder));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, lines, sockets };
}

function readLines(socket: Socket, onLine: (line: string) => void): { readonly remainder: string } {
  const state = { remainder: '' };
  socket.setEncoding('utf8').on('data', (text: string) => {
    const parts = (state.remainder + text).split('\n');
    state.remainder = parts.pop() ?? '';
    for (const part of parts) onLine(part);
  });
  return state;
}

function closed(socket: Socket | undefined): Promise<string> {
  return new Promise((resolve) => {
    socket?.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket?.once('close', () => resolve('end'));
  });
}
