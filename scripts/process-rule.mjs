#!/usr/bin/env node
/**
 * Only src/lifecycle starts or signals processes. Finds, in the syntax trees of everything else in src, each use of a
 * module or of a call of the addon that can, and each use of the process object but for a short list of members; a use
 * that cannot be judged, like a computed name, is one, too.
 *
 * usage: node scripts/process-rule.mjs
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { filesBelow } from './lib/fingerprint.mjs';
import { inRoot } from './lib/project.mjs';
import * as syntax from './process-rule/syntax.mjs';

const { boundNames, constantText, isExported, isValueUse, memberOf, plain, programOf, writtenNames } = syntax;

/** @typedef {{ file: string, line: number, what: string }} Offence */
/** An object that is followed under every name it gets. @typedef {'process' | 'global' | 'addon'} Kind */

const ALLOWED = [/^src\/lifecycle\//, /^src\/native\/(?:addon|process|job)\.ts$/];
/** What starts processes, and what loads other modules or runs code out of sight of this rule. */
const MODULES = /^(?:node:)?(?:child_process|cluster|module|vm)$/;
/** The others are words like any other where nothing is imported. */
const MODULE_TEXTS = /^(?:node:(?:child_process|cluster|module|vm)|child_process)$/;
const PROCESS_MODULE = /^(?:node:)?process$/;
const NATIVE_BINARY = /\.node$/;
const ADDON_FACE = /\/native\/(?:process|job)\.[jt]s$/;
const HARMLESS_OF_FACES = new Set(['probeContainment', 'hasJobs']);
const FORBIDDEN_NAMES = new Set([
  ...['spawnSupervisor', 'signalProcess', 'holdInJob'],
  ...['getBuiltinModule', 'createRequire'],
]);
const HARMLESS_OF_PROCESS = new Set([
  ...['argv', 'env', 'execPath', 'pid', 'platform', 'version', 'versions', 'stdin', 'stdout', 'stderr'],
  ...['exit', 'exitCode', 'getuid', 'getgid', 'geteuid', 'on', 'once', 'removeListener'],
]);
/** They return the process object. */
const CHAINED_OF_PROCESS = new Set(['on', 'once', 'removeListener']);
/** @type {Record<Kind, string>} */
const TITLES = { process: 'process', global: 'the global object', addon: 'the addon' };

/**
 * @param {string} fileName relative to the root, as in src/daemon/daemon.ts
 * @param {string} text
 * @returns {Offence[]} in the order of lines
 */
export function offencesIn(fileName, text) {
  return new Search(fileName, text).offences();
}

/** The offences of the tree. @returns {Offence[]} */
export function offencesOfTree() {
  const files = filesBelow('src').filter((file) => /\.[cm]?[jt]s$/.test(file));
  const searched = files.filter((file) => !ALLOWED.some((allowed) => allowed.test(file)));
  return searched.flatMap((file) => offencesIn(file, readFileSync(inRoot(file), 'utf8')));
}

class Search {
  #file;
  #source;
  #keyOf;
  /** What names stand for. @type {Map<ts.Symbol | string, Kind>} */
  #kinds = new Map([
    ['process', 'process'],
    ['globalThis', 'global'],
    ['global', 'global'],
  ]);
  /** @type {Map<string, Offence>} */
  #found = new Map();

  /** @param {string} file @param {string} text */
  constructor(file, text) {
    this.#file = file;
    const { source, keyOf } = programOf(file, text);
    this.#source = source;
    this.#keyOf = keyOf;
  }

  offences() {
    // An alias may stand behind its use, and be one of an alias.
    for (let known = -1; known !== this.#kinds.size; ) {
      known = this.#kinds.size;
      this.#each((node) => this.#learn(node));
    }
    this.#each((node) => this.#judge(node));
    return [...this.#found.values()].sort((a, b) => a.line - b.line);
  }

  /** @param {(node: ts.Node) => void} visit */
  #each(visit) {
    /** @param {ts.Node} node */
    const walk = (node) => {
      visit(node);
      ts.forEachChild(node, walk);
    };
    walk(this.#source);
  }

  /** @param {ts.Node} node @param {string} what */
  #report(node, what) {
    const line = this.#source.getLineAndCharacterOfPosition(node.getStart(this.#source)).line + 1;
    this.#found.set(`${line} ${what}`, { file: this.#file, line, what });
  }

  /** Aliases. @param {ts.Node} node */
  #learn(node) {
    for (const name of processImports(node)) this.#kinds.set(this.#keyOf(name), 'process');
    for (const { target, value } of boundNames(node)) this.#learnTarget(target, this.#kindOf(value));
  }

  /** @param {ts.Node | undefined} target a name, or a pattern that takes members @param {Kind | undefined} kind */
  #learnTarget(target, kind) {
    if (!target || !kind) return;
    if (ts.isIdentifier(target)) this.#kinds.set(this.#keyOf(target), kind);
    else for (const { name, local } of writtenNames(target)) this.#learnTarget(local, kindOfMember(kind, name));
  }

  /** @param {ts.Node} node */
  #judge(node) {
    if (ts.isImportDeclaration(node)) this.#judgeImport(node);
    else if (ts.isExportDeclaration(node)) this.#judgeExport(node);
    else if (ts.isImportEqualsDeclaration(node)) this.#judgeImportEquals(node);
    else if (ts.isCallExpression(node)) this.#judgeCall(node);
    if (ts.isExpression(node) || ts.isIdentifier(node)) this.#judgeText(node);
    this.#judgeMember(node);
    this.#judgeType(node);
    const kind = this.#kindOf(node);
    if (kind && ts.isExpression(node) && isValueUse(node)) this.#report(node, `${TITLES[kind]} as a value`);
    for (const { target, value } of boundNames(node)) this.#judgeTarget(target, this.#kindOf(value));
  }

  /** @param {ts.Identifier | ts.Expression} node */
  #judgeText(node) {
    const text = ts.isIdentifier(node) ? node.text : constantText(node);
    if (text === undefined) return;
    if (FORBIDDEN_NAMES.has(text)) this.#report(node, text);
    if (!ts.isIdentifier(node) && (MODULE_TEXTS.test(text) || NATIVE_BINARY.test(text))) this.#report(node, text);
  }

  /** @param {ts.ImportDeclaration} node */
  #judgeImport(node) {
    const specifier = constantText(node.moduleSpecifier) ?? '';
    if (MODULES.test(specifier)) this.#report(node, specifier);
    const clause = node.importClause;
    if (!clause || clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return;
    if (!clause.namedBindings || ts.isNamespaceImport(clause.namedBindings)) {
      if (this.#isAddonFace(specifier)) this.#report(node, `all of ${specifier}`);
      return;
    }
    for (const element of clause.namedBindings.elements) this.#judgeImported(element, specifier);
  }

  /** @param {ts.ExportDeclaration} node */
  #judgeExport(node) {
    const specifier = node.moduleSpecifier && constantText(node.moduleSpecifier);
    if (specifier === undefined) return;
    if (MODULES.test(specifier)) this.#report(node, specifier);
    if (node.isTypeOnly) return;
    if (node.exportClause && ts.isNamedExports(node.exportClause)) {
      for (const element of node.exportClause.elements) this.#judgeImported(element, specifier);
    } else if (this.#isAddonFace(specifier) || PROCESS_MODULE.test(specifier)) {
      this.#report(node, `all of ${specifier}`);
    }
  }

  /** @param {ts.ImportSpecifier | ts.ExportSpecifier} element @param {string} specifier */
  #judgeImported(element, specifier) {
    if (element.isTypeOnly) return;
    const name = (element.propertyName ?? element.name).text;
    if (this.#isAddonFace(specifier) && !HARMLESS_OF_FACES.has(name)) this.#report(element, `${name} of ${specifier}`);
    if (!PROCESS_MODULE.test(specifier)) return;
    if (name !== 'default') this.#judgeName(element, 'process', name);
    else if (ts.isExportSpecifier(element)) this.#report(element, 'process as a value');
  }

  /** @param {ts.ImportEqualsDeclaration} node */
  #judgeImportEquals(node) {
    const specifier = requiredBy(node);
    if (specifier === undefined) return;
    if (MODULES.test(specifier)) this.#report(node, specifier);
    if (this.#isAddonFace(specifier)) this.#report(node, `all of ${specifier}`);
    if (PROCESS_MODULE.test(specifier) && isExported(node)) this.#report(node, 'process as a value');
  }

  /** @param {ts.CallExpression} node */
  #judgeCall(node) {
    const [argument] = node.arguments;
    if (!argument || !isLoader(node.expression)) return;
    const specifier = constantText(argument);
    if (specifier === undefined) this.#report(node, 'a module of a computed name');
    else if (MODULES.test(specifier)) this.#report(node, specifier);
    else if (this.#isAddonFace(specifier)) this.#report(node, `all of ${specifier}`);
  }

  /** @param {ts.Node} node */
  #judgeMember(node) {
    const member = memberOf(node);
    const kind = member && this.#kindOf(member.object);
    if (member && kind) this.#judgeName(node, kind, member.name);
  }

  /** @param {ts.Node} node @param {Kind} kind @param {string | undefined} name undefined: computed, or the rest */
  #judgeName(node, kind, name) {
    if (name === undefined) this.#report(node, `a computed member of ${TITLES[kind]}`);
    else if (kind === 'process' && !HARMLESS_OF_PROCESS.has(name) && kindOfMember(kind, name) === undefined) {
      this.#report(node, `process.${name}`);
    }
  }

  /** @param {ts.Node | undefined} target @param {Kind | undefined} kind of the value that the target is bound to */
  #judgeTarget(target, kind) {
    if (!target || !kind) return;
    if (ts.isIdentifier(target)) {
      if (isExported(target.parent)) this.#report(target, `${TITLES[kind]} as a value`);
      return;
    }
    for (const { node, name, local } of writtenNames(target)) {
      this.#judgeName(node, kind, name);
      this.#judgeTarget(local, kindOfMember(kind, name));
    }
  }

  /** What has the type of the process object is one, wherever it comes from. @param {ts.Node} node */
  #judgeType(node) {
    const member = memberOf(node);
    if (member?.name === 'Process' && ts.isIdentifier(member.object) && member.object.text === 'NodeJS') {
      this.#report(node, 'NodeJS.Process');
    }
    if (ts.isTypeQueryNode(node) && this.#kindOf(node.exprName) === 'process') this.#report(node, 'typeof process');
  }

  /** @param {string} specifier */
  #isAddonFace(specifier) {
    if (!specifier.startsWith('.')) return false;
    const { pathname } = new URL(specifier, `file:///${this.#file}`);
    return ADDON_FACE.test(pathname);
  }

  /** What an expression, or a name in a type, stands for. @param {ts.Node} node @returns {Kind | undefined} */
  #kindOf(node) {
    const inner = plain(node);
    if (ts.isIdentifier(inner)) return this.#kinds.get(this.#keyOf(inner));
    if (ts.isCallExpression(inner)) return this.#kindOfCall(inner);
    const member = memberOf(inner);
    const kind = member && this.#kindOf(member.object);
    return kind && kindOfMember(kind, member.name);
  }

  /** @param {ts.CallExpression} call @returns {Kind | undefined} */
  #kindOfCall({ expression, arguments: [argument] }) {
    const callee = plain(expression);
    if (ts.isIdentifier(callee) && callee.text === 'nativeExports') return 'addon';
    if (argument && isLoader(callee) && PROCESS_MODULE.test(constantText(argument) ?? '')) return 'process';
    const member = memberOf(callee);
    const chained = member?.name !== undefined && CHAINED_OF_PROCESS.has(member.name);
    return chained && this.#kindOf(member.object) === 'process' ? 'process' : undefined;
  }
}

/** @param {Kind} kind @param {string | undefined} name @returns {Kind | undefined} */
function kindOfMember(kind, name) {
  if (kind === 'process' && name === 'default') return 'process';
  if (kind !== 'global') return undefined;
  if (name === 'process') return 'process';
  return name === 'global' || name === 'globalThis' ? 'global' : undefined;
}

/** The names that an import gives to the process object. @param {ts.Node} node @returns {ts.Identifier[]} */
function processImports(node) {
  if (ts.isImportEqualsDeclaration(node)) return PROCESS_MODULE.test(requiredBy(node) ?? '') ? [node.name] : [];
  if (!ts.isImportDeclaration(node) || !PROCESS_MODULE.test(constantText(node.moduleSpecifier) ?? '')) return [];
  const { name, namedBindings } = node.importClause ?? {};
  const names = name ? [name] : [];
  if (!namedBindings) return names;
  if (ts.isNamespaceImport(namedBindings)) return [...names, namedBindings.name];
  const defaults = namedBindings.elements.filter((element) => element.propertyName?.text === 'default');
  return [...names, ...defaults.map((element) => element.name)];
}

/** The module of `import x = require('module')`. @param {ts.ImportEqualsDeclaration} node */
function requiredBy({ moduleReference }) {
  return ts.isExternalModuleReference(moduleReference) ? constantText(moduleReference.expression) : undefined;
}

/**
 * Whether a call of this loads a module. What createRequire makes is not followed: its name alone is an offence.
 * @param {ts.Node} callee
 */
function isLoader(callee) {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const offences = offencesOfTree();
  for (const { file, line, what } of offences) {
    console.log(`${file}:${line}: ${what}: only src/lifecycle starts or signals processes`);
  }
  process.exitCode = offences.length === 0 ? 0 : 1;
}
