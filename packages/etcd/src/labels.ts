/**
 * What this process calls its claims on a name, in their keys.
 *
 * The fewest that do: etcd remembers a deleted key until it is compacted, and a look at all claims on a name passes every
 * key that there ever was. With a new key for each claim, a lock that had been taken ten thousand times would take twice
 * as long to take.
 *
 * A label is used again only when the key that had it is known to have gone for good. A request of the claim before that
 * may yet arrive would act on the key of the next.
 */
export class Labels {
  readonly #session: string;
  readonly #used = new Map<string, Set<number>>();
  /** Below it are those that may not be used again. */
  #first = 0;

  /** @param session tells this process's labels from those of all others */
  constructor(session: string) {
    this.#session = session;
  }

  take(name: string): Label {
    const used = this.#used.get(name) ?? new Set();
    let number = this.#first;
    while (used.has(number)) number++;
    this.#used.set(name, used.add(number));
    return { name, number, text: `${this.#session}-${number}` };
  }

  /** @param gone its key is known to have gone, and nothing that was sent can make it again */
  giveBack({ name, number }: Label, gone: boolean): void {
    const used = this.#used.get(name);
    if (used?.delete(number) === true && used.size === 0) this.#used.delete(name);
    if (!gone) this.#first = Math.max(this.#first, number + 1);
  }
}

export interface Label {
  readonly name: string;
  readonly number: number;
  readonly text: string;
}
