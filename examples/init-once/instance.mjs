import { join } from 'node:path';
import { connect } from '@holdfast/core';
import Database from 'libsql';
import { serve, takes } from '../instances.mjs';

const db = new Database(join(process.argv[2], 'resource.db'), { timeout: 5000 });
const locks = await connect();

const isReady = () => db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'ready'").get() !== undefined;

/**
 * Each step can be done again, so that whoever comes after one that died halfway begins anew. The last step is the mark
 * that says that all of them were done.
 */
async function setUp() {
  db.exec('CREATE TABLE IF NOT EXISTS countries (code TEXT PRIMARY KEY)');
  for (const code of ['de', 'fr', 'jp']) {
    await takes(50);
    db.prepare('INSERT INTO countries VALUES (?) ON CONFLICT DO NOTHING').run(code);
  }
  db.exec('CREATE TABLE ready (at TEXT)');
}

/** Before an instance serves: cheap when all is there already. */
async function ensureSetUp() {
  if (isReady()) return 'was there';
  return locks.lock('setup:countries').run(async () => {
    if (isReady()) return 'waited';
    await setUp();
    return 'set it up';
  });
}

serve(
  async () => ({
    outcome: await ensureSetUp(),
    countries: db.prepare('SELECT count(*) AS n FROM countries').get().n,
  }),
  () => locks.close(),
);
