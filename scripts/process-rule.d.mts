export interface Offence {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}
/** @param fileName relative to the root, as in src/daemon/daemon.ts @returns in the order of lines */
export function offencesIn(fileName: string, text: string): Offence[];
/** The offences of the tree. */
export function offencesOfTree(): Offence[];
