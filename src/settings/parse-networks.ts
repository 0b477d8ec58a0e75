import { BlockList, isIP } from "node:net";

const sizes = { 4: 32, 6: 128 } as const;

/**
 * A check whether an address lies in a network of the list, such as `10.0.0.0/8,2001:db8::1`.
 * Undefined where the list has something else.
 */
export function parseNetworks(list: string): ((address: string) => boolean) | undefined {
  const networks = new BlockList();
  const entries = list.split(",").flatMap((entry) => entry.trim() || []);
  for (const entry of entries) {
    const [address = "", prefix, ...others] = entry.split("/");
    const version = isIP(address);
    if ((version !== 4 && version !== 6) || others.length > 0) return undefined;
    const size = sizes[version];
    if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > size))
      return undefined;
    networks.addSubnet(address, Number(prefix ?? size), `ipv${version}`);
  }
  return (address) => {
    const version = isIP(address);
    return (version === 4 || version === 6) && networks.check(address, `ipv${version}`);
  };
}
