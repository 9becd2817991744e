#!/usr/bin/env node
/**
 * Only src/lifecycle starts or signals processes. Finds, in the syntax trees of everything else in src, each use of
 * child_process, of cluster, of what the process object offers for it, and of the addon's calls; a use that cannot be
 * judged, like a computed name, is one, too.
 *
 * usage: node scripts/process-rule.mjs
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { filesBelow } from './lib/fingerprint.mjs';
import { inRoot } from './lib/project.mjs';
import { boundNames, constantText, isValueUse, plain, programOf, writtenNames } from './process-rule/syntax.mjs';

/** @typedef {{ file: string, line: number, what: string }} Offence */

const ALLOWED = [/^src\/lifecycle\//, /^src\/native\/(?:process|job)\.ts$/];
const MODULES = /^(?:node:)?(?:child_process|cluster)$/;
const PROCESS_MODULE = /^(?:node:)?process$/;
const ADDON_MODULE = /\/native\/(?:process|job)\.[jt]s$/;
const ADDON_HARMLESS = new Set(['probeContainment']);
const ADDON_CALLS = new Set(['spawnSupervisor', 'signalProcess']);
const OF_PROCESS = new Set([
  ...['kill', '_kill', 'abort', 'binding', '_linkedBinding', 'dlopen', 'getBuiltinModule', 'mainModule'],
  ...['_debugProcess', 'reallyExit'],
]);

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
  /** Names that stand for the process object, and for the global one. @type {Set<ts.Symbol | string>} */
  #process = new Set(['process']);
  /** @type {Set<ts.Symbol | string>} */
  #global = new Set(['globalThis', 'global']);
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
    for (let known = -1; known !== this.#process.size + this.#global.size; ) {
      known = this.#process.size + this.#global.size;
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
    if (ts.isImportDeclaration(node) && PROCESS_MODULE.test(constantText(node.moduleSpecifier) ?? '')) {
      const { name, namedBindings } = node.importClause ?? {};
      if (name) this.#process.add(this.#keyOf(name));
      if (namedBindings && ts.isNamespaceImport(namedBindings)) this.#process.add(this.#keyOf(namedBindings.name));
      if (namedBindings && ts.isNamedImports(namedBindings)) {
        for (const element of namedBindings.elements) {
          if ((element.propertyName ?? element.name).text === 'default') this.#process.add(this.#keyOf(element.name));
        }
      }
    }
    for (const { target, value } of boundNames(node)) {
      if (ts.isIdentifier(target)) {
        if (this.#isProcess(value)) this.#process.add(this.#keyOf(target));
        if (this.#isGlobal(value)) this.#global.add(this.#keyOf(target));
      } else if (this.#isGlobal(value)) {
        for (const { name, local } of writtenNames(target)) {
          if (name === 'process' && local && ts.isIdentifier(local)) this.#process.add(this.#keyOf(local));
          if ((name === 'globalThis' || name === 'global') && local && ts.isIdentifier(local)) {
            this.#global.add(this.#keyOf(local));
          }
        }
      }
    }
  }

  /** @param {ts.Node} node */
  #judge(node) {
    if (ts.isImportDeclaration(node)) this.#judgeImport(node);
    else if (ts.isExportDeclaration(node)) this.#judgeExport(node);
    else if (ts.isCallExpression(node)) this.#judgeCall(node);
    else if (ts.isPropertyAccessExpression(node)) this.#judgeMember(node, node.expression, node.name.text);
    else if (ts.isElementAccessExpression(node)) {
      this.#judgeMember(node, node.expression, constantText(node.argumentExpression));
    }
    if (ts.isIdentifier(node) || ts.isExpression(node)) this.#judgeText(node);
    if (ts.isIdentifier(node) && isValueUse(node)) {
      if (this.#process.has(this.#keyOf(node))) this.#report(node, 'the process object as a value');
      if (this.#global.has(this.#keyOf(node))) this.#report(node, 'the global object as a value');
    }
    for (const { target, value } of boundNames(node)) this.#judgePattern(target, value);
  }

  /** @param {ts.Identifier | ts.Expression} node */
  #judgeText(node) {
    const text = ts.isIdentifier(node) ? node.text : constantText(node);
    if (text === undefined) return;
    if (ADDON_CALLS.has(text)) this.#report(node, text);
    if (text === 'getBuiltinModule') this.#report(node, text);
    // A word like another, unless it names a module.
    const harmless = text === 'cluster' && !ts.isExternalModuleReference(node.parent);
    if (!ts.isIdentifier(node) && MODULES.test(text) && !harmless) this.#report(node, text);
  }

  /** @param {ts.ImportDeclaration} node */
  #judgeImport(node) {
    const specifier = constantText(node.moduleSpecifier) ?? '';
    if (MODULES.test(specifier)) this.#report(node, specifier);
    const clause = node.importClause;
    if (!clause || clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return;
    const addon = this.#isAddon(specifier);
    if (!clause.namedBindings || ts.isNamespaceImport(clause.namedBindings)) {
      if (addon) this.#report(node, `all of ${specifier}`);
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
    } else if (this.#isAddon(specifier) || PROCESS_MODULE.test(specifier)) this.#report(node, `all of ${specifier}`);
  }

  /** @param {ts.ImportSpecifier | ts.ExportSpecifier} element @param {string} specifier */
  #judgeImported(element, specifier) {
    if (element.isTypeOnly) return;
    const name = (element.propertyName ?? element.name).text;
    if (this.#isAddon(specifier) && !ADDON_HARMLESS.has(name)) this.#report(element, `${name} of ${specifier}`);
    if (PROCESS_MODULE.test(specifier) && OF_PROCESS.has(name)) this.#report(element, `process.${name}`);
    if (PROCESS_MODULE.test(specifier) && name === 'default' && ts.isExportSpecifier(element)) {
      this.#report(element, 'the process object as a value');
    }
  }

  /** @param {ts.CallExpression} node */
  #judgeCall(node) {
    const [argument] = node.arguments;
    if (!argument) return;
    const specifier = constantText(argument);
    if (specifier === undefined) {
      if (node.expression.kind === ts.SyntaxKind.ImportKeyword) this.#report(node, 'import() of a computed name');
      return;
    }
    if (MODULES.test(specifier)) this.#report(node, specifier);
    if (this.#isAddon(specifier)) this.#report(node, `all of ${specifier}`);
  }

  /** @param {ts.Node} node @param {ts.Expression} object @param {string | undefined} name undefined: computed */
  #judgeMember(node, object, name) {
    if (this.#isProcess(object)) {
      if (name === undefined) this.#report(node, 'a computed member of process');
      else if (OF_PROCESS.has(name)) this.#report(node, `process.${name}`);
    } else if (this.#isGlobal(object)) {
      if (name === undefined) this.#report(node, 'a computed member of the global object');
      else if (name === 'process' && ts.isExpression(node) && isValueUse(node)) {
        this.#report(node, 'the process object as a value');
      }
    }
  }

  /** @param {ts.Node} target @param {ts.Expression | 'process'} value */
  #judgePattern(target, value) {
    if (ts.isIdentifier(target)) return;
    const ofProcess = value === 'process' || this.#isProcess(value);
    if (!ofProcess && !this.#isGlobal(value)) return;
    for (const { node, name, local } of writtenNames(target)) {
      if (name === undefined) this.#report(node, 'a computed member or the rest of process or the global object');
      else if (!ofProcess && name === 'process' && local) this.#judgePattern(local, 'process');
      else if (ofProcess && OF_PROCESS.has(name)) this.#report(node, `process.${name}`);
    }
  }

  /** @param {string} specifier */
  #isAddon(specifier) {
    if (!specifier.startsWith('.')) return false;
    const { pathname } = new URL(specifier, `file:///${this.#file}`);
    return ADDON_MODULE.test(pathname);
  }

  /** @param {ts.Expression | 'process'} expression @returns {boolean} */
  #isProcess(expression) {
    if (expression === 'process') return true;
    const inner = plain(expression);
    if (ts.isIdentifier(inner)) return this.#process.has(this.#keyOf(inner));
    if (ts.isCallExpression(inner)) {
      const [argument] = inner.arguments;
      return argument !== undefined && PROCESS_MODULE.test(constantText(argument) ?? '') && isLoader(inner.expression);
    }
    const member = memberOf(inner);
    if (!member) return false;
    return member.name === 'default'
      ? this.#isProcess(member.object)
      : member.name === 'process' && this.#isGlobal(member.object);
  }

  /** @param {ts.Expression | 'process'} expression @returns {boolean} */
  #isGlobal(expression) {
    if (expression === 'process') return false;
    const inner = plain(expression);
    if (ts.isIdentifier(inner)) return this.#global.has(this.#keyOf(inner));
    const member = memberOf(inner);
    return member !== undefined && /^global(?:This)?$/.test(member.name ?? '') && this.#isGlobal(member.object);
  }
}

/** @param {ts.Expression} node @returns {{ object: ts.Expression, name: string | undefined } | undefined} */
function memberOf(node) {
  if (ts.isPropertyAccessExpression(node)) return { object: node.expression, name: node.name.text };
  if (ts.isElementAccessExpression(node)) {
    return { object: node.expression, name: constantText(node.argumentExpression) };
  }
  return undefined;
}

/** Whether a call of this loads a module: import, require, what createRequire made. @param {ts.Expression} callee */
function isLoader(callee) {
  return callee.kind === ts.SyntaxKind.ImportKeyword || ts.isIdentifier(callee) || ts.isCallExpression(callee);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const offences = offencesOfTree();
  for (const { file, line, what } of offences) {
    console.log(`${file}:${line}: ${what}: only src/lifecycle starts or signals processes`);
  }
  process.exitCode = offences.length === 0 ? 0 : 1;
}
