/** Directory of everything that the full tests install or make. */
export function fullDirectory(): string;
/** Installs the CLIs when they are missing. @returns the directory that holds the programs `codex` and `pi` */
export function installClis(): Promise<string>;
