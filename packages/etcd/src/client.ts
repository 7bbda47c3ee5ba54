import type { Interceptor } from '@grpc/grpc-js';
import type {
  IAlarmRequest,
  IAlarmResponse,
  IDuplexStream,
  ILeaseGrantRequest,
  ILeaseGrantResponse,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  ILeaseRevokeRequest,
  ILeaseTimeToLiveRequest,
  ILeaseTimeToLiveResponse,
  IMemberListResponse,
  IRangeRequest,
  IRangeResponse,
  IStatusResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
} from 'etcd3';

/** Options of one call, as gRPC takes them. */
export interface CallOptions {
  readonly interceptors?: Interceptor[];
}

export type KeepAliveStream = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;
export type WatchStream = IDuplexStream<IWatchRequest, IWatchResponse>;

/**
 * The few methods of etcd3's client that this package calls: another copy or version of it is as welcome. Only plain
 * calls are used: its `Lock` leaves renewed leases behind when it fails, its `Lease` reports a loss after twice the
 * ttl, and its watchers end without a word (etcd3 1.1.2).
 */
export interface EtcdClient {
  readonly kv: {
    txn(request: ITxnRequest, options?: CallOptions): Promise<ITxnResponse>;
    range(request: IRangeRequest, options?: CallOptions): Promise<IRangeResponse>;
  };
  readonly leaseClient: {
    leaseGrant(request: ILeaseGrantRequest, options?: CallOptions): Promise<ILeaseGrantResponse>;
    leaseRevoke(request: ILeaseRevokeRequest, options?: CallOptions): Promise<unknown>;
    leaseTimeToLive(
      request: ILeaseTimeToLiveRequest,
      options?: CallOptions,
    ): Promise<ILeaseTimeToLiveResponse>;
    leaseKeepAlive(options?: CallOptions): Promise<KeepAliveStream>;
  };
  readonly watchClient: { watch(options?: CallOptions): Promise<WatchStream> };
  /** For `diagnose()`. */
  readonly maintenance?: {
    alarm(request: IAlarmRequest, options?: CallOptions): Promise<IAlarmResponse>;
    status(options?: CallOptions): Promise<IStatusResponse>;
  };
  /** For `diagnose()`. */
  readonly cluster?: { memberList(request: object, options?: CallOptions): Promise<IMemberListResponse> };
}
