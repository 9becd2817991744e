/**
 * The layers of src/, highest first; see CONTRIBUTING.md. A folder may import folders of the lines below its own, never
 * of the lines above and never another folder of its own line.
 */
const layers = [
  ['cli'],
  ['daemon'],
  ['mount'],
  ['service'],
  ['harnesses'],
  ['routing'],
  ['lifecycle', 'sessions', 'queue', 'audit'],
  ['durable'],
  ['contract', 'native'],
];

/** The one exception inside a line: the typed face of the addon uses the contract's types. */
const siblingExceptions = { native: ['contract'] };

const folders = layers.flat();

const layerRules = layers.flatMap((line, depth) =>
  line.map((folder) => {
    const below = layers.slice(depth + 1).flat();
    const allowed = [folder, ...below, ...(siblingExceptions[folder] ?? [])];
    return {
      name: `layer-${folder}`,
      comment: `src/${folder} may import only: ${allowed.join(', ')}`,
      severity: 'error',
      from: { path: `^src/${folder}/` },
      to: { path: '^src/', pathNot: `^src/(${allowed.join('|')})/` },
    };
  }),
);

const ioModules =
  'child_process|cluster|dgram|dns|fs|http|http2|https|inspector|net|process|readline|repl|tls|tty|worker_threads';

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: 'known-folder',
      comment: 'every folder of src/ stands in the list of layers',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/(${folders.join('|')})/` },
      to: {},
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'contract-without-io',
      comment: 'the contract is types, schemas and tables: no I/O, no native code',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { path: `^(node:)?(${ioModules})(/|$)|^src/native/` },
    },
    {
      name: 'harness-cross-import',
      comment: 'a harness knows nothing of another harness',
      severity: 'error',
      from: { path: '^src/harnesses/([^/]+)/' },
      to: { path: '^src/harnesses/[^/]+/', pathNot: '^src/harnesses/$1/' },
    },
    {
      name: 'harness-registry-only',
      comment: 'registry.ts is the one file that names a concrete harness',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/harnesses/([^/]+/|registry\\.ts$)' },
      to: { path: '^src/harnesses/[^/]+/' },
    },
    {
      name: 'addon-behind-its-face',
      comment: 'the addon is used through the typed faces in src/native; lifecycle also asks where the supervisor is',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(native|lifecycle)/' },
      to: { path: '^src/native/addon\\.ts$|\\.node$' },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-undeclared-package',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|build)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
    },
  },
};
