/** Full jitter over an exponential: many clients that lost one server must not come back in step. */
export function backoff(failures: number, longest = 2000): number {
  const ceiling = Math.min(longest, 50 * 2 ** Math.min(failures, 16));
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
