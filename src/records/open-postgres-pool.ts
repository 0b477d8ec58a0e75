import { Pool, type PoolConfig } from "pg";
import { postgresConnectionOptions } from "./postgres-connection-options.ts";

/** Connections to the server, which are made when they are needed and again when they were lost. */
export function openPostgresPool(url: string, options: PoolConfig): Pool {
  const pool = new Pool({ ...postgresConnectionOptions(url), ...options });
  // The query reports a connection that is lost to its caller; without listeners it is a crash.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
