/** The greatest token that a backend may mint: it fits a signed 64-bit integer. */
export const MAX_TOKEN = 2n ** 63n - 1n;

/** The greatest `fenceOffset`. Half of the range stays for the tokens that it is added to: no backend comes near it. */
export const MAX_FENCE_OFFSET = 2n ** 62n;

/** Whether a backend can ever have minted this token. */
export function isToken(token: bigint): boolean {
  return token >= 0n && token <= MAX_TOKEN;
}
