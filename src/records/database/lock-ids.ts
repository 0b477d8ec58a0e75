/**
 * First halves of the keys of the service's advisory locks. A database belongs to one service, and
 * others that use it need other keys.
 */
export const lockIds = {
  /** Taken for the time of each write transaction. */
  writing: 0x6d6f7301,
  /** Of the replica that does what only one may do. */
  leading: 0x6d6f7302,
  /** Each replica has one, whose second half is its number. */
  replica: 0x6d6f7303,
} as const;
