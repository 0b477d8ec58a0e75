import type { lookup as systemLookup, LookupAddress, LookupOptions } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { stripUrlSecrets } from "./strip-url-secrets.ts";
import { ServiceError } from "../contract/errors.ts";

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
function checkAddressLiteral(host: string): void {
  const address = host.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw privateAddressError(host);
}

function privateAddressError(host: string): ServiceError {
  const rule = "this service does not fetch from private addresses";
  const message = `Host "${host}" is not on the public internet, and ${rule}`;
  return new ServiceError("model_source_refused", message);
}

/**
 * IPv4 that is not on the public internet: the special-purpose registry of IANA (RFC 6890) and
 * multicast.
 */
const specialIpv4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * Parts of global unicast (2000::/3) that embed other addresses or are not routed: Teredo and
 * similar, documentation, 6to4.
 */
const specialIpv6: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const special = new BlockList();
for (const [net, prefix] of specialIpv4) special.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of specialIpv6) special.addSubnet(net, prefix, "ipv6");
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

/** Whether an address is on the public internet. IPv4 inside IPv6 (mapped, NAT64) is not. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !special.check(address, "ipv4");
  return (
    isIP(address) === 6 && globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6")
  );
}

/**
 * Checks the address of a model before it is requested.
 * @throws ServiceError model_source_refused
 */
export function checkUrl(url: URL, allowPrivateAddresses: boolean): void {
  if (url.protocol !== "https:" && !(url.protocol === "http:" && allowPrivateAddresses)) {
    throw refusedUrlError(url, "must be an https:// address");
  }
  if (url.username !== "" || url.password !== "") {
    throw refusedUrlError(url, "must not contain a user name or password");
  }
  if (!allowPrivateAddresses) checkAddressLiteral(url.hostname);
}

function refusedUrlError(url: URL, problem: string): ServiceError {
  return new ServiceError("model_source_refused", `"${stripUrlSecrets(url)}" ${problem}`);
}
