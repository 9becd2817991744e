/** Called by a command that ends with another exit code than 0. */
export type Finish = (exitCode: number) => void;
