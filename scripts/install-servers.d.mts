export declare const SERVER_NAMES: readonly string[];
export declare function lookUp(name: string): string | undefined;
export declare function missing(names: readonly string[]): string[];
export declare function canInstall(): boolean;
export declare function installServers(names: readonly string[]): void;
