/** This process among those that work on the same records. */
export interface Replica {
  /** Its number, which no other process has at the same time. */
  readonly id: number;
  /** Whether others can work on the same records. */
  readonly isShared: boolean;
  /** Whether it does what only one replica may do. */
  readonly isLeader: () => boolean;
  /** Numbers of all that run. */
  readonly listRunning: () => Promise<ReadonlySet<number>>;
  /** False just after a reconnect, when other replicas may not have reconnected yet. */
  readonly isListComplete: () => boolean;
}

/** Below 2^31, as PostgreSQL's numbers of four bytes are. */
export function newReplicaId(): number {
  return Math.floor(Math.random() * (2 ** 31 - 1));
}

/** The only process that works on its records. */
export function createOnlyReplica(): Replica {
  const id = newReplicaId();
  return {
    id,
    isShared: false,
    isLeader: () => true,
    listRunning: async () => new Set([id]),
    isListComplete: () => true,
  };
}

/** A process, distinct from later ones with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startMark: string;
}
