const podRange = "10.244.0.0/24";
const clusterDomain = "cluster.local";

/** TOML. The runtime keeps its data in /run, which is the sandbox's own and in memory. */
export function runtimeConfiguration(options: {
  socket: string;
  sandboxImage: string;
  networkFolder: string;
}): string {
  const { socket, sandboxImage, networkFolder } = options;
  return `
version = 2
root = "/run/containerd/root"
state = "/run/containerd/state"
[grpc]
address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "${sandboxImage}"
# Machines that withhold CAP_SYS_RESOURCE let no process lower its score.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "${networkFolder}"
`;
}

/** Pods on a bridge of the sandbox; what leaves it bears the node's address. */
export function podNetworkConfiguration(): object {
  const ipam = {
    type: "host-local",
    dataDir: "/run/cni",
    ranges: [[{ subnet: podRange }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  const bridge = {
    type: "bridge",
    bridge: "pods",
    isGateway: true,
    ipMasq: true,
    hairpinMode: true,
    ipam,
  };
  const portmap = { type: "portmap", capabilities: { portMappings: true } };
  return { cniVersion: "0.4.0", name: "pods", plugins: [bridge, portmap] };
}

export function kubeletConfiguration(options: {
  address: string;
  socket: string;
  cgroup: string;
}): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: options.address,
    // Only this machine reaches the sandbox.
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: `unix://${options.socket}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${options.cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [options.address],
    clusterDomain,
    resolvConf: "",
    // Images cannot be pulled again, and the machine's disk is not the node's.
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      "memory.available": "1Mi",
      "nodefs.available": "0%",
      "imagefs.available": "0%",
    },
  };
}

export function proxyConfiguration(kubeconfig: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "iptables",
    clientConnection: { kubeconfig },
    clusterCIDR: podRange,
    // These limits are the whole machine's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}

/** A Corefile. */
export function nameServerConfiguration(address: string, kubeconfig: string): string {
  return `
.:53 {
  bind ${address}
  errors
  kubernetes ${clusterDomain} in-addr.arpa {
    kubeconfig ${kubeconfig}
  }
}
`;
}
