/** CRC-16/XMODEM by byte, as the Redis Cluster specification prescribes ("Key distribution model"). */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** How many slots a cluster has. */
export const SLOTS = 16384;

/** The slot of a key: of its hash tag where it has one, else of the whole key. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashed(key))) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  }
  return crc % SLOTS;
}

/** What is between the first opening brace and the first closing one after it, unless that is nothing. */
function hashed(key: string): string {
  const start = key.indexOf('{');
  if (start < 0) return key;
  const end = key.indexOf('}', start);
  return end > start + 1 ? key.slice(start + 1, end) : key;
}
