/**
 * Runs work in which new errors note no stack. gRPC makes one with each call, in case the call fails, for the caller's
 * stack: ours would say nothing, and costs a thirtieth of an uncontended acquisition.
 */
export function withoutStacks<T>(work: () => T): T {
  const limit = Error.stackTraceLimit;
  // Refused where somebody has frozen what every module shares.
  if (!Reflect.set(Error, 'stackTraceLimit', 0)) return work();
  try {
    return work();
  } finally {
    Error.stackTraceLimit = limit;
  }
}
