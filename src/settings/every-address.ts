/** In place of an address to listen on: every address of the machine, IPv6 and IPv4. */
export const everyAddress = "*";
