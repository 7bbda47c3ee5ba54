/** Every bound of a run is multiplied by this: set `HOLDFAST_TIME_FACTOR` above 1 on a slow machine. */
export const TIME_FACTOR = readFactor(process.env.HOLDFAST_TIME_FACTOR);

function readFactor(text: string | undefined): number {
  const factor = text === undefined || text === '' ? 1 : Number(text);
  if (!(factor > 0) || factor === Infinity) {
    throw new RangeError(`HOLDFAST_TIME_FACTOR is ${JSON.stringify(text)}; allowed: a number above zero`);
  }
  return factor;
}
