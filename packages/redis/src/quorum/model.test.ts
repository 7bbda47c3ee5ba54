import { describe, expect, it } from 'vitest';

// The quorum's protocol as a model, searched over every interleaving of two contenders on three servers: requests
// are executed in any order or never, answers come or are lost, contenders give up at any moment, votes expire whenever
// they may. (An answer that is late is an answer that is lost: what it would have been for has been decided. A release is a
// vote that expires at once.) Each rule of the protocol is left out once: then the search must find what breaks.

interface Rules {
  /** The highest token of the votes is written back before the handle is returned. */
  readonly writeBack: boolean;
  /** A majority, and not fewer, must vote. */
  readonly majority: number;
  /** A server that restarted empty keeps out until every vote of before has lapsed. */
  readonly restartGrace: boolean;
  /** A token is settled by the votes of a majority: a late vote does not raise it under acknowledgements for less. */
  readonly acknowledgedByToken: boolean;
  /** Whoever has told its caller that the lock is lost believes no renewal that is answered later. */
  readonly lossIsFinal: boolean;
}

const PROTOCOL: Rules = {
  writeBack: true,
  majority: 2,
  restartGrace: true,
  acknowledgedByToken: true,
  lossIsFinal: true,
};

type Phase = 'idle' | 'voting' | 'confirming' | 'holding' | 'over';

interface Contender {
  readonly phase: Phase;
  /** A vote of its has expired somewhere: its validity, which began before that vote, is over. */
  readonly lapsed: boolean;
  readonly votes: readonly (number | undefined)[];
  readonly token: number;
  readonly acks: readonly boolean[];
  /** Servers that have extended a renewal of its, whose answers are still under way. */
  readonly extended: readonly boolean[];
}

interface Server {
  readonly holder: number | undefined;
  readonly fence: number;
  /** It has restarted empty, and contenders whose votes it forgot may still be valid. */
  readonly forgot: readonly boolean[];
}

type Message =
  | { readonly kind: 'acquire'; readonly from: number; readonly to: number }
  | { readonly kind: 'confirm'; readonly from: number; readonly to: number; readonly token: number };

interface State {
  readonly contenders: readonly Contender[];
  readonly servers: readonly Server[];
  readonly messages: readonly Message[];
  readonly highest: number;
  readonly restarts: number;
}

/** The servers' clocks are part of every vote, and they are not quite in step. */
const CLOCKS = [3, 1, 2];

const SERVERS = [0, 1, 2];

const START: State = {
  contenders: [0, 1].map(() => ({
    phase: 'idle',
    lapsed: false,
    votes: [undefined, undefined, undefined],
    token: 0,
    acks: [false, false, false],
    extended: [false, false, false],
  })),
  servers: SERVERS.map(() => ({ holder: undefined, fence: 0, forgot: [false, false] })),
  messages: [],
  highest: 0,
  restarts: 0,
};

class Violation extends Error {}

function put<T>(list: readonly T[], index: number, change: Partial<T> | T): readonly T[] {
  return list.map((item, at) =>
    at !== index
      ? item
      : typeof change === 'object' && change !== null
        ? { ...item, ...change }
        : (change as T),
  );
}

function send(state: State, messages: readonly Message[]): State {
  return { ...state, messages: [...state.messages, ...messages] };
}

/** What it has under way only raises counters from here on, which breaks nothing. */
function giveUp(state: State, who: number): State {
  const contenders = put(state.contenders, who, { phase: 'over' as const });
  return { ...state, contenders, messages: state.messages.filter((message) => message.from !== who) };
}

/** A renewal is extended at a server, and its answer is slow; the answers of a majority come. */
function* renewals(state: State, who: number, rules: Rules): Iterable<State> {
  const { phase, extended } = state.contenders[who] as Contender;
  if (phase === 'holding') {
    for (const [index, server] of state.servers.entries()) {
      if (server.holder !== who || extended[index] === true) continue;
      yield change(state, who, { extended: put(extended, index, true) });
    }
  }
  if (phase !== 'over' || extended.filter(Boolean).length < rules.majority) return;
  if (state.contenders.some((other, at) => at !== who && other.phase === 'holding')) {
    throw new Violation('two holders: one came back to life');
  }
  yield change(state, who, { phase: 'holding' });
}

/** Every state that may follow. */
function* next(state: State, rules: Rules, restarts: number): Iterable<State> {
  for (const [who, contender] of state.contenders.entries()) {
    // The two are alike: the first begins first.
    if (contender.phase === 'idle' && (who === 0 || state.contenders[0]?.phase !== 'idle')) {
      const contenders = put(state.contenders, who, { phase: 'voting' as const });
      yield send(
        { ...state, contenders },
        SERVERS.map((to) => ({ kind: 'acquire', from: who, to })),
      );
    }
    if (contender.phase !== 'idle' && contender.phase !== 'over') yield giveUp(state, who);
    if (!rules.lossIsFinal) yield* renewals(state, who, rules);
  }
  for (const [index, server] of state.servers.entries()) {
    // A vote lapses later than the validity that it serves.
    if (server.holder !== undefined && state.contenders[server.holder]?.phase !== 'holding') {
      yield {
        ...state,
        servers: put(state.servers, index, { holder: undefined }),
        contenders: put(state.contenders, server.holder, { lapsed: true }),
      };
    }
    if (state.restarts < restarts) {
      const forgot = state.contenders.map((_, who) => server.forgot[who] === true || server.holder === who);
      // Its clock is past every token that it has forgotten.
      const fence = Math.max(server.fence, state.highest);
      yield {
        ...state,
        restarts: state.restarts + 1,
        servers: put(state.servers, index, { holder: undefined, fence, forgot }),
      };
    }
  }
  for (const [index, message] of state.messages.entries()) {
    yield* deliver({ ...state, messages: state.messages.filter((_, at) => at !== index) }, message, rules);
  }
}

/** While a contender whose vote was forgotten may still be valid, a server that restarted refuses all. */
function keepsOut(state: State, server: Server, rules: Rules): boolean {
  return (
    rules.restartGrace &&
    server.forgot.some((forgot, who) => {
      const contender = state.contenders[who];
      return forgot && contender !== undefined && contender.phase !== 'over' && !contender.lapsed;
    })
  );
}

/** The server executes the request; its answer comes, or is lost. */
function* deliver(state: State, message: Message, rules: Rules): Iterable<State> {
  const server = state.servers[message.to] as Server;
  switch (message.kind) {
    case 'acquire': {
      if (server.holder !== undefined || keepsOut(state, server, rules)) return;
      const fence = Math.max(server.fence + 1, CLOCKS[message.to] as number);
      const executed = { ...state, servers: put(state.servers, message.to, { holder: message.from, fence }) };
      yield executed;
      yield voted(executed, message.from, message.to, fence, rules);
      return;
    }
    case 'confirm': {
      if (server.holder !== message.from) return;
      const fence = Math.max(server.fence, message.token);
      const executed = { ...state, servers: put(state.servers, message.to, { fence }) };
      yield executed;
      yield acknowledged(executed, message.from, message.to, fence, rules);
      return;
    }
  }
}

function voted(state: State, who: number, by: number, fence: number, rules: Rules): State {
  const contender = state.contenders[who] as Contender;
  if (!rules.acknowledgedByToken && contender.phase === 'confirming' && fence > contender.token) {
    return change(state, who, { votes: put(contender.votes, by, fence), token: fence });
  }
  // A vote that comes after the token was settled has no part in it.
  if (contender.phase !== 'voting') return state;
  const votes = put(contender.votes, by, fence);
  const cast = votes.filter((vote) => vote !== undefined);
  if (cast.length < rules.majority) return change(state, who, { votes });
  const token = Math.max(...cast);
  if (!rules.writeBack) return grant(change(state, who, { votes, token }), who);
  return ask(change(state, who, { votes, token, phase: 'confirming' }), who);
}

/** An acknowledgement counts for one token: a higher one is written back in its turn. */
function acknowledged(state: State, who: number, by: number, fence: number, rules: Rules): State {
  const contender = state.contenders[who] as Contender;
  if (contender.phase !== 'confirming') return state;
  if (fence > contender.token) {
    return ask(change(state, who, { token: fence, acks: contender.acks.map(() => false) }), who);
  }
  const acks = put(contender.acks, by, true);
  const next = change(state, who, { acks });
  return acks.filter(Boolean).length < rules.majority ? next : grant(next, who);
}

function change(state: State, who: number, changes: Partial<Contender>): State {
  return { ...state, contenders: put(state.contenders, who, changes) };
}

/** The token goes to those that have voted. */
function ask(state: State, who: number): State {
  const { votes, token } = state.contenders[who] as Contender;
  const voters = SERVERS.filter((server) => votes[server] !== undefined);
  return send(
    state,
    voters.map((to) => ({ kind: 'confirm', from: who, to, token })),
  );
}

function grant(state: State, who: number): State {
  const { token, lapsed } = state.contenders[who] as Contender;
  // Validity is looked at once more when the handle is returned.
  if (lapsed) return giveUp(state, who);
  if (state.contenders.some((other, at) => at !== who && other.phase === 'holding')) {
    throw new Violation('two holders');
  }
  if (token <= state.highest) throw new Violation(`token ${token} after ${state.highest}`);
  return { ...change(state, who, { phase: 'holding' }), highest: token };
}

/** How many states there are; the first violation ends it. */
function search(
  rules: Rules,
  { restarts = 0, limit = 3_000_000 } = {},
): { states: number; violation?: string } {
  const seen = new Set([key(START)]);
  const open = [START];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    try {
      for (const following of next(state, rules, restarts)) {
        const name = key(following);
        if (seen.has(name)) continue;
        seen.add(name);
        open.push(following);
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return { states: seen.size, violation: error.message };
    }
    if (seen.size > limit) throw new Error(`more than ${limit} states: not searched whole`);
  }
  return { states: seen.size };
}

/** Messages are a bag: their order says nothing. */
function key({ contenders, servers, messages, highest, restarts }: State): string {
  const bag = messages.map((message) => Object.values(message).join()).sort();
  const who = contenders.map((c) =>
    [
      c.phase,
      c.lapsed ? 1 : 0,
      c.votes.join(),
      c.token,
      c.acks.map(Number).join(''),
      c.extended.map(Number).join(''),
    ].join('/'),
  );
  const where = servers.map((s) => [s.holder, s.fence, s.forgot.map(Number).join('')].join('/'));
  return [who.join(' '), where.join(' '), bag.join(' '), highest, restarts].join('|');
}

describe('the quorum’s protocol', () => {
  it('has no two holders and no falling token in any interleaving', () => {
    const result = search(PROTOCOL);
    expect(result.violation).toBeUndefined();
    expect(result.states).toBeGreaterThan(10_000);
  }, 300_000);

  it.each([
    ['without the write-back a token falls', { writeBack: false }, /token/],
    ['with fewer than a majority there are two holders', { majority: 1 }, /two holders|token/],
    [
      'with a late vote that raises the token, and acknowledgements for less, a token falls',
      { acknowledgedByToken: false },
      /token/,
    ],
    [
      'with renewals that count after the loss there are two holders',
      { lossIsFinal: false },
      /came back to life/,
    ],
  ])(
    '%s',
    (_what, without, found) => {
      expect(search({ ...PROTOCOL, ...without }).violation).toMatch(found);
    },
    300_000,
  );

  it('without the restart grace there are two holders', () => {
    expect(search({ ...PROTOCOL, restartGrace: false }, { restarts: 1 }).violation).toMatch(/two holders/);
  }, 300_000);
});
