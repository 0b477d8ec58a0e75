import type { LookupAddress, LookupOptions, lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { ServiceError } from "../contract/errors.ts";
import { isPublicAddress } from "./is-public-address.ts";

/**
 * Resolves a host for a connection, to public addresses only: the address that is checked is the
 * one that is connected to.
 */
export function createPublicLookup(lookup: typeof systemLookup): LookupFunction {
  return (host, options: LookupOptions, callback) => {
    lookup(host, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) {
        callback(error, "");
        return;
      }
      const [first, ...rest] = addresses.filter(({ address }) => isPublicAddress(address));
      if (first === undefined) callback(privateAddressError(host), "");
      else if (options.all) callback(null, [first, ...rest]);
      else callback(null, first.address, first.family);
    });
  };
}

/** Refuses private address literals, which a connection does not look up. */
export function checkAddressLiteral(host: string): void {
  const address = host.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw privateAddressError(host);
}

function privateAddressError(host: string): ServiceError {
  const rule = "this service does not fetch from private addresses";
  const message = `Host "${host}" is not on the public internet, and ${rule}`;
  return new ServiceError("model_source_refused", message);
}
