import type { BackendModule } from '../backend.js';

/** The backend among what a package exports: its own namespace, or one of its exports. */
export function backendModuleIn(exported: unknown): BackendModule | undefined {
  if (isBackendModule(exported)) return exported;
  if (typeof exported !== 'object' || exported === null) return undefined;
  return Object.values(exported).find(isBackendModule);
}

/** True for something with the members that `connect()` needs. */
export function isBackendModule(value: unknown): value is BackendModule {
  if (typeof value !== 'object' || value === null) return false;
  const { schemes, createBackend } = value as Partial<BackendModule>;
  return Array.isArray(schemes) && typeof createBackend === 'function';
}
