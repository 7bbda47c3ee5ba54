import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Diagnosis } from '@holdfast/core';
import type { MachineTime } from './machine-clock.js';
import type { Sql } from './sqlite-connection.js';

/** File systems by the number that Linux gives them (statfs(2)). */
const NETWORKED: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x6a656a63, 'virtiofs'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x5346414f, 'AFS'],
]);

/** The layer that a container may write to, and nobody else sees. */
const OVERLAY = 0x794c7630;

/** What a SQLite file, where it lies and how it is written, means for locks. */
export function diagnoseSqlite(sql: Sql, time: MachineTime): readonly Diagnosis[] {
  const version = sql.row<{ version: string }>('SELECT sqlite_version() AS version')?.version;
  const file = sql.rows<{ name: string; file: string }>('PRAGMA database_list')[0]?.file ?? '';
  const journal = sql.row<{ journal_mode: string }>('PRAGMA journal_mode')?.journal_mode ?? '';
  const synchronous = sql.row<{ synchronous: number }>('PRAGMA synchronous')?.synchronous ?? 0;
  return [
    { level: 'ok', id: 'sqlite-version', finding: `the database is SQLite ${version}` },
    journalOf(journal, synchronous),
    place(file, journal),
    clock(time),
  ];
}

function journalOf(journal: string, synchronous: number): Diagnosis {
  const id = 'sqlite-journal';
  if (journal === 'memory' || journal === 'off') {
    return {
      level: 'danger',
      id,
      finding: `journal_mode is ${journal}: a process that is killed in the midst of a write can leave a broken file`,
      advice: 'set journal_mode to wal, or to delete where a write-ahead log does not work',
    };
  }
  const how = `journal_mode is ${journal}, synchronous is ${synchronous}`;
  if (synchronous > 0) return { level: 'ok', id, finding: how };
  return {
    level: 'warning',
    id,
    finding: `${how}: a power cut can break the file, and the tokens with it`,
    advice: 'set synchronous to NORMAL with wal, to FULL otherwise',
  };
}

function place(file: string, journal: string): Diagnosis {
  const id = 'sqlite-file';
  if (file === '') {
    return {
      level: 'danger',
      id,
      finding: 'the database is in memory: other processes have others, and their locks do not meet',
      advice: 'use a file',
    };
  }
  const type = typeOf(file);
  const network = type === undefined ? undefined : NETWORKED.get(type);
  if (network !== undefined) {
    const why =
      journal === 'wal'
        ? 'a write-ahead log needs memory that all processes share, which machines do not'
        : "file locks there are as good as that file system's";
    return {
      level: journal === 'wal' ? 'danger' : 'warning',
      id,
      finding: `${file} lies on ${network}: ${why}`,
      advice:
        'keep the file on a disk of the machine; where several machines must meet, use a server such as PostgreSQL or Redis',
    };
  }
  if (type === OVERLAY) {
    return {
      level: 'info',
      id,
      finding: `${file} lies in the writable layer of a container: other containers do not see it, and it goes with this one`,
      advice: 'put the file on a volume that everybody who shares the locks has',
    };
  }
  return { level: 'ok', id, finding: `${file} lies on this machine` };
}

function typeOf(file: string): number | undefined {
  try {
    return Number(BigInt.asUintN(32, BigInt(statfsSync(dirname(file)).type)));
  } catch {
    return undefined;
  }
}

function clock({ clockId }: MachineTime): Diagnosis {
  const id = 'sqlite-clock';
  if (clockId !== 'wall') {
    return {
      level: 'ok',
      id,
      finding: "expiry is counted on the machine's time since boot: its wall clock may step",
    };
  }
  return {
    level: 'info',
    id,
    finding: 'expiry is counted on the wall clock here: a step of it lengthens or cuts every ttl',
    advice: 'run NTP so that it slews',
  };
}
