import { networkInterfaces } from "node:os";

const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);

/** False where this machine has IPv6, else the sentence to skip with. */
export const ipv6Missing: string | false =
  !addresses.some(({ family }) => family === "IPv6") && "Needs IPv6";
