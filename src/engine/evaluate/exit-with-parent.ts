import { createReadStream } from "node:fs";

/** Ends the process when its standard input, a pipe that the parent never writes to, reaches its end. */
createReadStream("", { fd: 0 })
  .on("close", () => process.kill(process.pid, "SIGKILL"))
  .resume();
