/**
 * How long a waiter counts as alive after its last sign of life, and how long a lock that was handed over is the heir's
 * unless it takes it, ms. As in scripts/_queue.lua.
 */
export const LIVENESS = 5000;

/** A third of the liveness: a late sign of life still comes in time, and so does the one after a lost one. */
export const REFRESH_PERIOD = LIVENESS / 3;
