import type { CaseGroup } from './data.js';
import { filesUnder, read } from './workspace.js';

/** The title of a test, of a group of tests, or of a case of the conformance suite. */
const TITLE = /(?:\b(?:describe|it|test)\(|\)\(|\basync )\s*(['"`])((?:(?!\1).)+)\1/g;
/** Ids in it: `noscript: each node is told`, `release-expired-loops, noscript: …`, `summer time (sql-dst)`. */
const IDS = /(?<![\w-])([a-z0-9]+(?:-[a-z0-9]+)*)(?=[:,)]|$)/g;

/** The files in which a test's title bears the id, for each. */
export function findCases(groups: readonly CaseGroup[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>(groups.flatMap(({ cases }) => cases.map(({ id }) => [id, []])));
  const files = filesUnder('packages', '.ts').filter(
    (path) => path.endsWith('.test.ts') || path.startsWith('packages/conformance/src/guarantees/'),
  );
  for (const path of files) {
    for (const [, , title = ''] of read(path).matchAll(TITLE)) {
      for (const [, id = ''] of title.matchAll(IDS)) found.get(id)?.push(path);
    }
  }
  return new Map([...found].map(([id, paths]) => [id, [...new Set(paths)]]));
}
