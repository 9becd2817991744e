/** node.exe versions that the full tests run under Wine. */
export const windowsNodeVersions: readonly string[];
/** Gets a node.exe from the npm registry when it is not there. @returns its path */
export function ensureWindowsNode(version: string): Promise<string>;
