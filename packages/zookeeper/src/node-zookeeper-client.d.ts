// What we use of node-zookeeper-client 1.1.3, which has no types of its own. Its insides, not its public API: only
// these give the transaction id of a reply, and a place to put the guards. Hence the exact version in package.json.

declare module 'node-zookeeper-client/lib/jute/index.js' {
  export interface Stat {
    readonly czxid: Buffer;
    readonly mtime: Buffer;
    readonly ephemeralOwner: Buffer;
    readonly numChildren: number;
  }
  export interface Acl {
    readonly perms: number;
  }
  export interface RequestHeader {
    readonly type: number;
  }
  export interface Response {
    readonly header: { readonly zxid: Buffer; readonly err: number };
    readonly payload: {
      readonly path?: string;
      readonly data?: Buffer;
      readonly children?: readonly string[];
      readonly stat?: Stat;
      /** Of a transaction: `err` where an operation failed, or was not done for the sake of one that did. */
      readonly results?: readonly { readonly err?: number }[];
    } | null;
  }
  export class Request {
    constructor(header: RequestHeader, payload: object | null);
  }
  export type Operation =
    | { readonly type: number; readonly path: string; readonly version: number }
    | {
        readonly type: number;
        readonly path: string;
        readonly data: Buffer;
        readonly acls: readonly { toRecord(): Acl }[];
        readonly mode: number;
      };
  export const TransactionRequest: new (operations: readonly Operation[]) => object;
  export const protocol: {
    RequestHeader: new (xid: number, type: number) => RequestHeader;
    CreateRequest: new (path: string, data: Buffer, acl: readonly Acl[], flags: number) => object;
    DeleteRequest: new (path: string, version: number) => object;
    ExistsRequest: new (path: string, watch: boolean) => object;
    GetDataRequest: new (path: string, watch: boolean) => object;
    SetDataRequest: new (path: string, data: Buffer, version: number) => object;
    GetChildren2Request: new (path: string, watch: boolean) => object;
  };
  export const data: {
    Id: new (scheme: string, id: string) => object;
    ACL: new (perms: number, id: object) => Acl;
  };
  export const OP_CODES: {
    readonly CREATE: number;
    readonly DELETE: number;
    readonly EXISTS: number;
    readonly GET_DATA: number;
    readonly SET_DATA: number;
    readonly GET_CHILDREN2: number;
    readonly CLOSE_SESSION: number;
    readonly MULTI: number;
  };
}

declare module 'node-zookeeper-client/lib/ConnectionManager.js' {
  import type { EventEmitter } from 'node:events';
  import type { Socket } from 'node:net';
  import type { Request, Response } from 'node-zookeeper-client/lib/jute/index.js';

  type Callback = (error: Error | null, response?: Response) => void;

  class ConnectionManager extends EventEmitter {
    static readonly STATES: Readonly<
      Record<
        | 'DISCONNECTED'
        | 'CONNECTING'
        | 'CONNECTED'
        | 'CLOSING'
        | 'CLOSED'
        | 'SESSION_EXPIRED'
        | 'AUTHENTICATION_FAILED',
        number
      >
    >;
    constructor(
      connectionString: string,
      options: { sessionTimeout: number; spinDelay: number },
      stateListener: (state: number) => void,
    );
    state: number;
    servers: { host: string; port: number }[];
    sessionTimeout: number;
    xid: number;
    sessionId: Buffer;
    credentials: { scheme: string; auth: Buffer }[];
    pendingBuffer: Buffer | null;
    connectTimeoutHandler: NodeJS.Timeout | null;
    socket?: Socket;
    packetQueue: { queue: { request: Request; callback: Callback }[] };
    pendingQueue: { request: Request; callback: Callback }[];
    watcherManager: { emit(event: { type: number; path: string }): void };
    updateTimeout(sessionTimeout: number): void;
    findNextServer(callback: (server: { host: string; port: number }) => void): void;
    connect(): void;
    queue(request: Request, callback: Callback): void;
    onSocketConnected(): void;
    onSocketData(chunk: Buffer): void;
    onSocketClosed(hasError: boolean): void;
    onSocketError(error: Error): void;
    onSocketTimeout(): void;
    onSocketDrain(): void;
  }
  export = ConnectionManager;
}
