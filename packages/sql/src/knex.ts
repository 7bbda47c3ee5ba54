/** The few things of a knex that we touch, so that any copy and version of it is accepted. */
export interface KnexLike {
  readonly client: {
    readonly config: { readonly client?: unknown };
    readonly driverName?: string;
    readonly dialect?: string;
    acquireConnection(): Promise<unknown>;
    releaseConnection(connection: unknown): Promise<unknown>;
  };
}
