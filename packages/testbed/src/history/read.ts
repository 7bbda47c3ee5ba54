import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { HistoryEvent } from './event.js';

/** The extension of a history's files. */
export const HISTORY_EXTENSION = '.history.jsonl';

/** Reads every history file of a folder and merges them by time. */
export function readHistoryFolder(folder: string): HistoryEvent[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(HISTORY_EXTENSION));
  return mergeHistories(
    files.map((file) => parseHistory(readFileSync(join(folder, file), 'utf8'), basename(file))),
  );
}

/**
 * Reads one process's lines. A last line without its newline was cut off by the death of its writer and does not count.
 *
 * @throws Error naming the line that cannot be read: a record with a hole in it proves nothing
 */
export function parseHistory(text: string, source = 'history'): HistoryEvent[] {
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as HistoryEvent;
    } catch (cause) {
      throw new Error(`${source}, line ${index + 1} is not JSON: ${line.slice(0, 80)}`, { cause });
    }
  });
}

/** One order for all processes, by time; each process's own order is kept. */
export function mergeHistories(histories: readonly (readonly HistoryEvent[])[]): HistoryEvent[] {
  return histories.flat().sort((a, b) => a.at - b.at);
}

/** The lines of a history, as a file holds them. */
export function formatHistory(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('');
}
