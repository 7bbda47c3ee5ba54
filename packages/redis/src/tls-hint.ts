import type { Client } from './client.js';

const NOT_SPOKEN =
  '; it took the connection and not the TLS handshake: it seems not to speak TLS (then the URL begins with redis, not with rediss), or hangs';

const SPOKEN =
  '; it hung up before its first word: it seems to speak TLS (then the URL begins with rediss, not with redis), or goes down';

const SENTINELS =
  '; the URL begins with rediss if the sentinels and the servers speak TLS, and with redis if they do not';

/**
 * What a connection that did not come about tells of TLS: a server that expects TLS hangs up on a command, and one that
 * does not waits for the end of the line that a handshake seems to be. Empty where it tells nothing.
 */
export function tlsHint({ stream }: Client, error: Error): string {
  const { code } = error as { code?: unknown };
  // Any other code tells by itself what happened, and so does an alert, which only TLS knows.
  if (code !== undefined && code !== 'ECONNRESET' && code !== 'EPROTO' && code !== 'EPIPE') return '';
  if (/\balert\b/.test(error.message)) return '';
  if (/All sentinels are unreachable/.test(error.message)) {
    return /timed out|closed|disconnected before secure|ECONNRESET|wrong version number/i.test(error.message)
      ? SENTINELS
      : '';
  }
  if (stream === undefined || stream.connecting === true) return '';
  if (stream.secureConnecting === true) return NOT_SPOKEN;
  const isSecure = stream.secureConnecting !== undefined;
  const hungUp = code !== undefined || /clos/i.test(error.message);
  return !isSecure && stream.bytesRead === 0 && hungUp ? SPOKEN : '';
}
