import { type ConnectOptions, connect, type HoldfastConfig, type Locks } from '@holdfast/core';
import { type DynamicModule, type FactoryProvider, Inject, Module } from '@nestjs/common';

/** The token by which the application's `Locks` are injected. */
export const LOCKS = Symbol.for('@holdfast/nest/locks');

/** Injects the application's `Locks`: `constructor(@InjectLocks() private readonly locks: Locks)`. */
export const InjectLocks = (): ReturnType<typeof Inject> => Inject(LOCKS);

/** Where the `Locks` come from, when a provider of the application knows. */
export interface HoldfastModuleAsyncOptions
  extends Pick<DynamicModule, 'imports'>,
    Pick<FactoryProvider<Locks>, 'inject' | 'useFactory'> {}

/**
 * Opens locks with the application, and closes them when it shuts down, after its servers have stopped.
 *
 * ```ts
 * @Module({ imports: [HoldfastModule.forRoot('redis://127.0.0.1:6379')] })
 * export class AppModule {}
 * ```
 */
export class HoldfastModule {
  readonly #locks: Locks;

  constructor(locks: Locks) {
    this.#locks = locks;
  }

  /** The arguments are those of `connect()`: a URL, an object, or nothing. */
  static forRoot(config?: string | URL | HoldfastConfig, options?: ConnectOptions): DynamicModule {
    return HoldfastModule.forRootAsync({ useFactory: () => connect(config, options) });
  }

  /** For locks that need other providers, such as a configuration or a client that exists already. */
  static forRootAsync({ imports = [], inject = [], useFactory }: HoldfastModuleAsyncOptions): DynamicModule {
    return {
      module: HoldfastModule,
      global: true,
      imports,
      providers: [{ provide: LOCKS, inject, useFactory }],
      exports: [LOCKS],
    };
  }

  /** Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    await this.#locks.close();
  }
}

// Nest's decorators as functions: their syntax would need a compiler's option that is on its way out.
Module({})(HoldfastModule);
InjectLocks()(HoldfastModule, undefined, 0);
