/** A limit of every connection, and why it is as large as it is. */
interface ConnectionLimit {
  readonly value: number;
  readonly reason: string;
}

function limit(value: number, reason: string): ConnectionLimit {
  return { value, reason };
}

/** What clients of the service's port may leave undone. */
export const connectionLimits = {
  connections: limit(
    10_000,
    "Connections at once. Beyond it the one that has been waiting longest for a request is closed.",
  ),
  connectionsPerAddress: limit(
    1_000,
    "Connections of one address, or of one IPv6 network of 64 bits. Where there are too many, " +
      "those beyond it make room first, also while they are being answered. Trusted proxies may " +
      "have more.",
  ),
  headersSeconds: limit(10, "Time for the headers of a request: one packet, in most cases."),
  idleSeconds: limit(60, "A connection without a request; proxies keep theirs as long."),
  bodyWindowSeconds: limit(
    20,
    "Time in which a body has to move on. There is no limit for a whole upload.",
  ),
  bodyWindowBytes: limit(
    2_000,
    "Bytes of a body in that time: a hundredth of the slowest mobile network.",
  ),
  readerStallSeconds: limit(
    45,
    "Time for which a client may take nothing of an answer that waits for it.",
  ),
  lingerSeconds: limit(
    30,
    "Time for the rest of a body after its answer: many clients send all before they read it.",
  ),
  lingerBytes: limit(512 * 1024 ** 2, "Bytes of such a body that are read and thrown away."),
} as const satisfies Record<string, ConnectionLimit>;

/** The values of the table. */
export type ConnectionLimits = Readonly<Record<keyof typeof connectionLimits, number>>;

export const defaultConnectionLimits = Object.fromEntries(
  Object.entries(connectionLimits).map(([name, { value }]) => [name, value]),
) as ConnectionLimits;
