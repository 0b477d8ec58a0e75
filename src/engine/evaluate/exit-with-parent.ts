import { createReadStream } from "node:fs";

/** Ends the process at the end of its standard input, a pipe that the parent never writes to. */
createReadStream("", { fd: 0 })
  .on("close", () => process.kill(process.pid, "SIGKILL"))
  .resume();
