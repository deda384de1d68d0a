// Generated from docs/openapi.json by `npm run generate`; not to be edited.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check that the server is running */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics in the Prometheus text format */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/openmetrics-text": string;
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check that the server is ready: it can read the sessions directory */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Readiness"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List agents */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AgentList"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Create an agent */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description A key for this request. A request with the same key gets the agent of the first one */
                    "Idempotency-Key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["StartAgent"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AgentInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an agent */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AgentInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve or deny a call */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Decision"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel the current task */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the events of an agent's thread
         * @description One event per entry, with the entry's number as id. `Last-Event-ID` continues after that
         *     entry. Three events have no id: `delta` has new words of the model, `retry` says that the
         *     model failed and will be asked again, and `approve` names a call that waits for approval.
         *     The stream ends when no task is in progress.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The id of the last event that was received */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export an agent
         * @description The body is one file with the session, the files of the workspace, the thread and the
         *     settings of the agent. Headers: `Sessile-As-Of-Run` is the newest run in the file,
         *     `Sessile-Entries` the length of the thread, `Sessile-Left` the number of things that could
         *     not be saved. The file contains the session's variables and environment, including
         *     secrets, but no keys of models. Refused while a task is in progress.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Include the files of the session's directory. Default: true */
                    files?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": components["schemas"]["SavedFile"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fork an agent
         * @description Forks the session. Each fork gets a copy of the thread.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ForkRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AgentList"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/moved": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark an agent as moved to another server
         * @description The agent takes no more tasks here: requests are answered with its new place (410
         *     `agent_moved`). Its session ends. Refused (409 `busy`) if the agent has worked since it
         *     was exported.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["MovedAgent"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AgentInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/rewind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rewind an agent to a step
         * @description Conversation, interpreters and files become what they were right after that step. Later
         *     entries stay in the thread, but no longer count.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RewindAgent"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RewoundAgent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the newest tasks of an agent */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of tasks. Default: 100 */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskList"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Give an agent a task
         * @description The server carries it out, even if the client disconnects.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description A key for this request. A request with the same key gets the task of the first one */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewTask"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskBegun"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/tasks/{task}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a task */
        get: {
            parameters: {
                query?: {
                    /** @description Wait this long for the end of the task */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The task's number */
                    task: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/thread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an agent's thread
         * @description Everything that the model was shown and did, including what was taken back. `…/events`
         *     streams the same live.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Return entries after this one */
                    after?: number;
                    /** @description Maximum number of entries. Default: 1000 */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ThreadPage"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo an agent's last task
         * @description The same as a rewind to the step before it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RewoundAgent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import an agent
         * @description The body is an exported file. The agent continues its thread in a new session. Importing
         *     runs code from the file as the server's user. So a file from another sessions directory is
         *     refused (403 `untrusted`) without `trust`.
         */
        post: {
            parameters: {
                query?: {
                    /**
                     * @description The directory for the agent and its files: new or empty. Default: the directory of the
                     *     exported session, if it is allowed
                     */
                    cwd?: string;
                    /** @description Save the new session in idle time. Default: the server's setting */
                    durable?: boolean;
                    /** @description The model. Default: the one of the same name, or the server's only one */
                    model?: string;
                    /** @description The name of the session. Default: the name of the exported one */
                    name?: string;
                    /** @description Trust the file: run its code, and send its thread to the model */
                    trust?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": components["schemas"]["SavedFile"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ImportedAgent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run one command in a temporary session
         * @description With a key, the result is kept for a minute after the answer. A repeated request gets it,
         *     even after a restart of the server.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description A key for this request. A request with the same key gets the result of the first one */
                    "Idempotency-Key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["OnceRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a session
         * @description The body is the file, or `path` names it. Restoring runs code from the file as the
         *     server's user. So a file from another sessions directory is refused (403 `untrusted`)
         *     without `trust`.
         */
        post: {
            parameters: {
                query?: {
                    /**
                     * @description The directory for the session and its saved files. It must be new or empty if there
                     *     are such files. Default: the directory of the saved session, if it is allowed
                     */
                    cwd?: string;
                    /** @description Save the new session in idle time. Default: the server's setting */
                    durable?: boolean;
                    /**
                     * @description End the session with the calling process, as for a new session. Ignored if it keeps
                     *     the name of the saved one
                     */
                    ends_with_caller?: boolean;
                    /** @description The name of the session. Default: the name of the saved one */
                    name?: string;
                    /** @description A file on the server's machine, instead of a body */
                    path?: string;
                    /** @description Trust the file, and run its code */
                    trust?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": components["schemas"]["SavedFile"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Restored"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List sessions, newest first, including ended ones */
        get: {
            parameters: {
                query?: {
                    /** @description `next` of the previous page */
                    after?: string;
                    /** @description Maximum number of sessions */
                    limit?: number;
                    /** @description Only sessions of this status: starting, active, terminated or lost */
                    status?: "starting" | "active" | "terminated" | "lost";
                    /** @description Only sessions of this workspace */
                    workspace?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionPage"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Start a session
         * @description With a key, a repeated request gets the session of the first one, even from another server
         *     or after a restart.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description A key for this request. A request with the same key gets the session of the first one */
                    "Idempotency-Key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["StartSession"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /** End all sessions */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EndedAll"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a session's metadata */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** End a session and everything it started */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Ended"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /**
         * Rename a session
         * @description Ended sessions can be renamed, too. Live sessions of one token need different names (409
         *     `name_taken`). `null` removes the name.
         */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RenameRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionInfo"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/sessions/{id}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Apply changes to the real directory
         * @description If a path has changed in the real directory since the session first changed it, nothing is
         *     applied, and the refusal names the path (409 `layer_conflict`). `force` applies anyway.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ApplyRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LayerApplied"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/checkpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the checkpoints of a session, oldest first */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CheckpointRow"][];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Take a checkpoint */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CheckpointRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CheckpointRow"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /** Remove all checkpoints */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Dropped"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/checkpoints/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a checkpoint */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The checkpoint */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Dropped"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the changes of a session
         * @description For a session in a sandbox with `overlay` files; otherwise 409 `no_layer`. Omits paths
         *     that the session may not see or change.
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Paths in the workspace, including everything below them, separated by commas; write a
                     *     comma in a name as `\,`. Default: all paths
                     * @example src,README.md
                     */
                    path?: string;
                    /** @description Return a table of the paths instead of a diff */
                    stat?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LayerDiff"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Discard changes: the session sees the real files again */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DiscardRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LayerDiscarded"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/eval": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run code and return the value of its last expression. Default language: Python */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description As for exec */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ExecRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Output"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the runs of a session
         * @description Starts with the unfinished runs. Sends `run` for each accepted run of any client, with its
         *     number as id; the run's own events are at `/v1/sessions/{id}/runs/{run}/events`. With
         *     `output=true`, sends the events of all runs instead: `started` with the command, `stdout`,
         *     `stderr`, `exited` with the exit code, and `closed` when nothing can write any more.
         *     `cancelled`, with the `code` and `message` of the error, is for a run that never began or
         *     whose end is unknown. `ended` is sent when the session has ended or is lost.
         *     `Last-Event-ID` continues after that event.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Include the output and the end of the runs */
                    output?: boolean;
                    /** @description With `output`: begin with this many finished runs */
                    tail?: number;
                };
                header?: {
                    /** @description The id of the last event that was received */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command
         * @description Returns the result, or after `wait` the run's number (202). With `Accept:
         *     text/event-stream`, streams the run's events instead.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description A key for this request. A request with the same key gets the run of the first one */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ExecRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Output"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a directory of the workspace
         * @description `depth` includes subdirectories. Links are listed, but not followed.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Levels to list; 1 is the directory itself */
                    depth?: number;
                    /** @description Maximum number of entries. Default: 10000 */
                    limit?: number;
                    /**
                     * @description A directory, relative to the workspace, or absolute and within it. Default: the
                     *     workspace
                     */
                    path?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileList"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Remove a file, a link or a directory */
        delete: {
            parameters: {
                query: {
                    /** @description Relative to the workspace, or absolute and within it */
                    path: string;
                    /** @description Remove a directory with its contents */
                    recursive?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RemovedFile"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a directory or a file as a tar archive
         * @description Names are relative to the directory. Links stay links; sockets, FIFOs and devices are left
         *     out. The archive is made while it is sent.
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Relative to the workspace, or absolute and within it; any bytes,
                     *     percent-encoded
                     * @example src/main.rs
                     */
                    path?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-tar": components["schemas"]["FileArchive"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /**
         * Unpack a tar archive into a directory
         * @description Creates the directory if needed, and replaces existing files one by one. Names that lead
         *     out of the directory are refused. Links that lead out of the workspace, devices and FIFOs
         *     are left out and listed in the answer. Owners and bits such as setuid are ignored.
         */
        put: {
            parameters: {
                query?: {
                    /**
                     * @description Relative to the workspace, or absolute and within it; any bytes,
                     *     percent-encoded
                     * @example src/main.rs
                     */
                    path?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/x-tar": components["schemas"]["FileArchive"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UnpackedArchive"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a file
         * @description `Range: bytes=…` returns a part (206). `If-None-Match` with its `ETag` returns nothing if
         *     the file is unchanged (304).
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Relative to the workspace, or absolute and within it; any bytes,
                     *     percent-encoded
                     * @example src/main.rs
                     */
                    path?: string;
                };
                header?: {
                    /** @description The ETag of an earlier answer */
                    "If-None-Match"?: string;
                    /** @description A range of bytes */
                    Range?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": components["schemas"]["FileContent"];
                    };
                };
                206: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": components["schemas"]["FileContent"];
                    };
                };
                /** @description The file is unchanged */
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /**
         * Write a file
         * @description The body is the content, of any size. The file is replaced once the whole body has
         *     arrived: nobody reads a partial file, and an incomplete body changes nothing.
         *     `If-None-Match: *` only creates a new file.
         */
        put: {
            parameters: {
                query: {
                    /** @description Permissions in octal, such as `0755`. Default: those of the existing file */
                    mode?: string;
                    /** @description Create missing parent directories */
                    parents?: boolean;
                    /**
                     * @description Relative to the workspace, or absolute and within it
                     * @example notes.txt
                     */
                    path: string;
                };
                header?: {
                    /** @description `*`: do not replace an existing file */
                    "If-None-Match"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/octet-stream": components["schemas"]["FileContent"] | null;
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description The file was replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description The file was created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/directory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a directory */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DirectoryRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move or rename a file or a directory */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["MoveRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/stat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get metadata of a path. Links are not followed */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Relative to the workspace, or absolute and within it; any bytes,
                     *     percent-encoded
                     * @example src/main.rs
                     */
                    path?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/files/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Watch the files of a directory
         * @description The first event is `ready`: later changes are reported. `created`, `modified` (a writer
         *     has closed the file, or its permissions changed) and `removed` have the `path`; a move is
         *     a `removed` and a `created`. `overflow` means that changes were missed: list the directory
         *     again, as after a lost connection. The last event is `ended`: the session has ended.
         */
        get: {
            parameters: {
                query?: {
                    /** @description A directory, relative to the workspace, or absolute and within it */
                    path?: string;
                    /** @description Include all subdirectories, at most 4096 */
                    recursive?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fork a session: create sessions with its state
         * @description Creates all forks or none. There is no Idempotency-Key: a repeated request creates more
         *     forks. Refused while a run is active (409 `busy`), unless `wait` is set.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ForkRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Forked"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List what was run, newest last */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number; the newest are returned */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HistoryRow"][];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Interrupt a run, or the current one, and keep the state */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["InterruptRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Interrupted"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List background jobs, oldest first */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobRow"][];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/jobs/{pid}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signal a job, or one of its processes, and all descendants */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The process */
                    pid: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignalRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignalledJob"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the ports that the session's processes listen on */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobPort"][];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/ports/{port}/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Send a request to a server in the session
         * @description Supports any method, any path, bodies of any length, and WebSockets. Path and query are
         *     passed on unchanged. `Authorization` and cookies are removed, in both directions. Answers
         *     of the session's server have the header `sessile-port`; answers of Sessile do not.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The path for the session's server */
                    path: string;
                    /** @description A port that a process of the session listens on */
                    port: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description The session's server closed the connection */
                502: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description The answer of the session's server */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reset a session: new kernels, empty history, same id */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Reset"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/rewind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rewind a session to a checkpoint
         * @description To the newest checkpoint, the named one, or the one before the last `runs` runs. The
         *     history records it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RewindRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Rewound"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the runs of a session, newest last: queued, running and finished ones */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number; the newest are returned */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunRow"][];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the result of a run */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum bytes of each stream in the answer */
                    max_output?: number;
                    /** @description Wait this long for the result, such as `30s` */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Output"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the events of a run
         * @description `started`, `stdout`, `stderr`, `exited` and `closed`, each with an id. `Last-Event-ID`
         *     continues after that event.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The id of the last event that was received */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/input": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send input to an interactive run */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["InputRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Input"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Press keys on the terminal of a run
         * @description Returns the screen once it has settled, or shows what is waited for. Only what appears
         *     after the keys counts.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["KeysRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScreenAnswer"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/output": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the output of a run, while it is running or later
         * @description Returns one stream. With `cursor`, returns both, as `stdout` and `stderr`, and the
         *     `cursor` for the next call.
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Return both streams, from the `cursor` of an earlier answer; replaces `stream` and
                     *     `from`
                     */
                    cursor?: string;
                    /** @description Where to begin: `next` of the previous answer */
                    from?: number;
                    /** @description Maximum bytes in the answer */
                    max?: number;
                    /** @description stdout (the default) or stderr */
                    stream?: "stdout" | "stderr";
                    /** @description Wait this long for output if there is none, such as `30s` */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OutputAnswer"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/resize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resize the terminal of a run */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["WindowSize"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Resized"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/screen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the terminal of a run as a person would see it
         * @description Returns the screen at once, or when it shows what is waited for; also after the run's end.
         *     `wait` and the header `Sessile-Wait` have the outcome of the wait.
         */
        get: {
            parameters: {
                query?: {
                    /** @description json (the default), text, cells (with colours), svg or png */
                    format?: "json" | "text" | "cells" | "svg" | "png";
                    /** @description Wait until the screen has not changed for this long, such as `200ms` */
                    settle?: components["schemas"]["Span"];
                    /** @description Maximum time to wait. Default: 10 s */
                    wait?: components["schemas"]["Span"];
                    /**
                     * @description Wait until this regular expression is found on the screen; `^` and `$`
                     *     are the ends of a line
                     */
                    wait_for?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScreenAnswer"];
                        "image/png": number[];
                        "image/svg+xml": string;
                        "text/plain": string;
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signal the foreground processes of a run, or what is left of it after its end */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignalRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Signalled"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs/{run}/ws": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Open a WebSocket for one run
         * @description Sends its events as JSON with `type` and `id`; accepts `stdin`, `eof`, `keys`, `signal`
         *     and `resize`. `screen=true` joins a terminal in use: the first message is `screen`, whose
         *     `data` draws the current screen.
         */
        get: {
            parameters: {
                query?: {
                    /** @description The id of the last event that was received */
                    after?: string;
                    /** @description Refuse all messages that change something */
                    read_only?: boolean;
                    /** @description Begin with the current screen of the terminal instead of all its output */
                    screen?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The run's number */
                    run: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description Switches to WebSocket */
                101: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/save": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a session as a file
         * @description The body is the file. Headers: `Sessile-As-Of-Run` is the newest run in it, `Sessile-Left`
         *     the number of things that could not be saved; they are listed when it is restored. The
         *     file contains the session's variables and environment, including secrets.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Include the files of the session's directory */
                    files?: boolean;
                    /** @description Wait for active runs instead of refusing */
                    wait?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": components["schemas"]["SavedFile"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Save a session to a file on the server's machine */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SaveRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Saved"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the state of the live kernels */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["State"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo the last run
         * @description Works in a session that was started with `auto`. The same as a rewind with `"runs": 1`.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UndoRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Rewound"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/ws": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Open a WebSocket for runs of a session
         * @description Send `{"type":"exec","command":"…"}`; the run's events come as JSON with `type` and `id`.
         *     While it runs, send `stdin`, `eof`, `keys`, `signal` and `resize`; they apply to the last
         *     run that was begun here, or to `run`. The `stdout` of a run with a terminal is input for a
         *     terminal emulator. With `watch=true`, sends the events of all runs of the session, as at
         *     `/v1/sessions/{id}/events?output=true`, and answers an `exec` with `accepted` and the
         *     run's number.
         */
        get: {
            parameters: {
                query?: {
                    /** @description With `watch`: the id of the last event that was received */
                    after?: string;
                    /** @description Refuse all messages that change something */
                    read_only?: boolean;
                    /** @description With `watch`: begin with this many finished runs */
                    tail?: number;
                    /** @description Send the events of all runs of the session, of any client */
                    watch?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the first four or more digits of the id, or its name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description Switches to WebSocket */
                101: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/runtime": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Call the `runtime` tool */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RuntimeRequest"];
                };
            };
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Anything"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show runs, CPU and memory of sessions, newest first
         * @description CPU (of one processor) and memory cover everything that a session has started. With
         *     `Accept: text/event-stream`, streams an event `top` after each interval.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Include ended and lost sessions */
                    all?: boolean;
                    /**
                     * @description The time over which CPU is measured, such as `500ms`; in a stream, the time between
                     *     events. Limited to `100ms` … `10s`
                     */
                    interval?: components["schemas"]["Span"];
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The request is refused; the body says why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Top"];
                        "text/event-stream": components["schemas"]["ServerSentEvent"];
                    };
                };
                /** @description Temporarily unavailable; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Accepted: {
            /** @description Always true */
            accepted: boolean;
        };
        /** @description A report of a command-line agent. */
        AgentActivity: {
            /** @enum {string} */
            activity: "text";
            text: string;
        } | {
            /** @enum {string} */
            activity: "tool_call";
            id?: string;
            input?: unknown;
            tool: string;
        } | {
            /** @enum {string} */
            activity: "tool_result";
            id?: string;
            is_error?: boolean;
            text?: string;
        } | (components["schemas"]["TokenUsage"] & {
            /** @enum {string} */
            activity: "usage";
        });
        /** @description The state of the session at the start of a task. */
        AgentContinuity: {
            /**
             * Format: int64
             * @description The run whose state was restored
             */
            as_of_run?: number;
            /** @description Names of what was lost */
            lost?: string[];
            status: components["schemas"]["AgentContinuityStatus"];
        };
        /** @enum {string} */
        AgentContinuityStatus: "live" | "restored" | "fresh";
        /** @description An agent */
        AgentInfo: {
            /** @description Tools whose calls wait for approval; `*` stands for all */
            approve: string[];
            /**
             * Format: int32
             * @description Number of steps that can be undone; 0: none
             */
            checkpoints: number;
            /** @description The state of its session after a restart, until its next task reports it */
            continuity: components["schemas"]["AgentContinuity"];
            /**
             * Format: int64
             * @description Milliseconds since 1970
             */
            created_ms: number;
            /**
             * Format: int64
             * @description The number of entries in its thread
             */
            entries: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970
             */
            last_activity_ms: number;
            /** @description The name of its model on this server */
            model: string;
            moved_to?: components["schemas"]["MovedTo"];
            session_id: components["schemas"]["SessionId"];
            status: components["schemas"]["AgentStatus"];
            /**
             * Format: int64
             * @description Total number of answers of its model
             */
            steps: number;
            /**
             * Format: int64
             * @description Number of its tasks, including undone and lost ones
             */
            task_count: number;
            thread_id: components["schemas"]["ThreadId"];
            waiting_for?: string;
            /** @description Its working directory */
            workspace: string;
        };
        AgentList: {
            agents: components["schemas"]["AgentInfo"][];
        };
        /** @enum {string} */
        AgentStatus: "idle" | "running" | "waiting_for_approval" | "moved" | "ended";
        /** @description Any object. */
        Anything: Record<string, unknown>;
        /** @description Some paths of a layer */
        ApplyRequest: {
            /** @description Apply even if the real directory has changed meanwhile */
            force?: boolean;
            /** @description Paths in the workspace, including everything below them. Default: all paths */
            paths?: string[] | null;
        };
        /** @description A call waits for approval: the data of the event `approve` */
        ApproveEvent: {
            call: string;
        };
        /** @description Checkpoints that a session takes automatically before each run. */
        Auto: {
            /** @description Whether it includes the files of the workspace. */
            files?: boolean;
            /**
             * Format: int32
             * @description How many are kept.
             */
            keep: number;
        };
        /** @description Checkpoints before each run: how many are kept, or that and files */
        AutoCheckpoints: number | components["schemas"]["AutoRequest"];
        /** @description Checkpoints before each run. */
        AutoRequest: {
            /** @description Include the files of the workspace */
            files?: boolean;
            /**
             * Format: int32
             * @description How many are kept
             * @example 10
             */
            keep: number;
        };
        /** @description A run that others are queued behind */
        Behind: {
            /** @description Its first line, possibly shortened */
            command: string;
            run: components["schemas"]["RunNo"];
        };
        /** @description A directory or file of the host, beside the workspace. */
        Bind: {
            /** @description Where it is on the host, an absolute path. */
            host: string;
            /** @description Where it is inside; the same path if not given. */
            inside?: string | null;
            read_only?: boolean;
        };
        /**
         * @description The encoding of bytes that are not text.
         * @enum {string}
         */
        BytesEncoding: "base64";
        CallVerdict: "allowed" | {
            /** @description With a message for the model. */
            denied: string;
        };
        /**
         * @description How a kernel's state is in a fork or a checkpoint.
         * @enum {string}
         */
        Carried: "live" | "saved" | "busy" | "lost";
        CarriedKernel: {
            as_of_run: components["schemas"]["RunNo"];
            carried: components["schemas"]["Carried"];
            language: components["schemas"]["Language"];
        };
        /**
         * @description How a path differs
         * @enum {string}
         */
        ChangeSort: "added" | "modified" | "deleted" | "renamed";
        /** @description A checkpoint to take. */
        CheckpointRequest: {
            /** @description Include the files of the workspace */
            files?: boolean;
            /**
             * @description Its name. Default: `checkpoint-` and the number of the last run
             * @example before-refactoring
             */
            name?: string | null;
            /** @description Wait for active runs instead of refusing */
            wait?: boolean;
        };
        /** @description A point that a session can be rewound to */
        CheckpointRow: {
            /** @description The newest run in it */
            as_of_run: components["schemas"]["RunNo"];
            /** @description Taken automatically before a run */
            auto: boolean;
            /** @description Set if it was just taken */
            continuity?: components["schemas"]["Continuity"];
            created_at: string;
            /** @description Its files, if they are included */
            files?: components["schemas"]["FilesRow"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What it does not include */
            left: components["schemas"]["LeftBehind"][];
            /** @example before-refactoring */
            name: string;
        };
        /** @description What happened to the session since it was last used */
        Continuity: {
            /** @enum {string} */
            status: "live";
        } | {
            /** @description The run whose state was restored */
            as_of_run: components["schemas"]["RunNo"];
            /** @description Names of what was not restored in the interpreters */
            lost: string[];
            /** @description Runs that were active when the keeper died */
            lost_runs: components["schemas"]["RunNo"][];
            /** @description The previous metadata of the session */
            previous: components["schemas"]["SessionInfo"];
            /** @enum {string} */
            status: "restored";
        } | {
            /** @description Names of what was not restored in the interpreters */
            lost: string[];
            /** @description Runs that were active when the keeper died */
            lost_runs: components["schemas"]["RunNo"][];
            /** @description The previous metadata of the session */
            previous: components["schemas"]["SessionInfo"];
            /** @enum {string} */
            status: "fresh";
        };
        /** @description CPU time, in cores */
        CpuLimit: {
            held_by: string;
            /** Format: double */
            limit: number;
        };
        /** @description The decision on a call. */
        Decision: {
            allow: boolean;
            call: string;
            /** @description The message for the model when the call is denied */
            reason?: string | null;
        };
        /** @description New words of the model: the data of the event `delta` */
        DeltaEvent: {
            text: string;
        };
        DirectoryRequest: {
            encoding?: components["schemas"]["Encoding"] | null;
            /** @description Create missing parents, and accept an existing directory */
            parents?: boolean;
            /** @example build/output */
            path: string;
        };
        /** @description Some paths of a layer */
        DiscardRequest: {
            /** @description Paths in the workspace, including everything below them. Default: all paths */
            paths?: string[] | null;
        };
        /** @description Removed checkpoints */
        Dropped: {
            /** @description Their names */
            dropped: string[];
        };
        /** @description The saves of a durable session. */
        Durable: components["schemas"]["SaveState"] & {
            /** @description What the last save has not, by name. */
            left?: components["schemas"]["LeftBehind"][];
            store?: components["schemas"]["DurableStore"] | null;
        };
        /** @description A store for saves. */
        DurableStore: components["schemas"]["SaveState"] & {
            /**
             * Format: int64
             * @description How often the session has been taken up from there; saves of an earlier
             *     epoch are refused.
             */
            epoch?: number;
            /** @description The machine on which it goes on instead of this one. */
            moved_to?: string | null;
            /** @description The machine that it was taken up from. */
            taken_from?: string | null;
            url: string;
        };
        /** @enum {string} */
        Encoding: "utf8" | "base64";
        /** @description Streams that are not text, and how they are written */
        Encodings: {
            stderr?: components["schemas"]["BytesEncoding"];
            stdout?: components["schemas"]["BytesEncoding"];
        };
        /** @description An ended session */
        Ended: {
            /** @description What could not be written to its files */
            lost?: string[];
            session_id: components["schemas"]["SessionId"];
            /** @example terminated */
            status: string;
        };
        /** @description Ended sessions */
        EndedAll: {
            /** @description Sessions that could not be ended */
            failed?: components["schemas"]["SessionId"][];
            /** @description What could not be written to the files of these sessions */
            lost?: string[];
            session_ids: components["schemas"]["SessionId"][];
            /** @example terminated */
            status: string;
        };
        /** @description A finished job of a shell */
        EndedJob: {
            /** @description Set if the run's text shows it */
            command?: string;
            /**
             * Format: int32
             * @description Absent if the shell no longer knows it
             */
            exit_code?: number;
            /** Format: int32 */
            pid: number;
            /** @description The run that started it */
            run: components["schemas"]["RunNo"];
        };
        /** @description Environment variables */
        Environment: {
            [key: string]: string;
        };
        /** @description An error */
        ErrorBody: {
            error: components["schemas"]["ErrorDetail"];
        };
        /** @description An error as JSON. */
        ErrorDetail: {
            /** @description A stable code for programs */
            code: string;
            /** @description What to do */
            hint: string;
            message: string;
        };
        /**
         * @description How the limit was detected
         * @enum {string}
         */
        Evidence: "counted" | "guessed";
        /** @description A run to begin. */
        ExecRequest: {
            /**
             * @description The command or code, any number of lines
             * @example x=41; echo $((x+1))
             */
            command: string;
            /** @description Environment variables for this run only */
            env?: components["schemas"]["Environment"];
            /** @description Keep stdin open for `…/input` */
            interactive?: boolean;
            language?: components["schemas"]["LanguageName"] | null;
            max_output?: components["schemas"]["Size"] | null;
            no_output_timeout?: components["schemas"]["Span"] | null;
            queue_timeout?: components["schemas"]["Span"] | null;
            /** @description Stdin of the command. Default: empty */
            stdin?: string | null;
            terminal?: components["schemas"]["Terminal"] | null;
            timeout?: components["schemas"]["Span"] | null;
            wait?: components["schemas"]["Span"] | null;
        };
        /**
         * Format: binary
         * @description A tree as a tar.
         */
        FileArchive: string;
        /**
         * Format: binary
         * @description A file's bytes.
         */
        FileContent: string;
        /** @description A file or a directory of the workspace */
        FileEntry: {
            /** @description The encoding of path, name and target if one of them is not UTF-8 */
            encoding?: components["schemas"]["BytesEncoding"];
            /** @description Permissions, such as `0644` */
            mode: string;
            /** @description Time of the last change */
            modified: string;
            name: string;
            /** @description Relative to the workspace; `.` is the workspace itself */
            path: string;
            /** Format: int64 */
            size: number;
            /** @description The target of a link */
            target?: string;
            type: components["schemas"]["FileType"];
        };
        /** @description The change that a call makes to a file. */
        FileIntent: {
            /** @description SHA-256 of the file after the change. */
            after: string;
            /** @description SHA-256 of the file before the change; absent if there is no file. */
            before?: string;
            /** @description The model's id for the call. */
            call: string;
        };
        /** @description The entries of a directory */
        FileList: {
            /** @description Sorted by name; each directory comes before its entries */
            entries: components["schemas"]["FileEntry"][];
            /** @description There are more entries than the limit */
            truncated: boolean;
        };
        /**
         * @description Where writes to the workspace go.
         * @enum {string}
         */
        FileMode: "overlay" | "direct";
        /** @description Open files of each process */
        FilesLimit: {
            held_by: string;
            /** Format: int64 */
            limit: number;
        };
        /** @description The files of a checkpoint */
        FilesRow: {
            /** Format: int64 */
            bytes: number;
            /** @description Examples of what was left out */
            examples: components["schemas"]["LeftBehind"][];
            /** Format: int64 */
            files: number;
            /** Format: int64 */
            left_out: number;
            /**
             * Format: int64
             * @description Bytes that were stored for it
             */
            stored_bytes: number;
        };
        /**
         * @description The type of a path
         * @enum {string}
         */
        FileType: "file" | "directory" | "symlink" | "other";
        /** @description New sessions with the state of another */
        Forked: {
            /** @description The newest run of the original in their state */
            as_of_run: components["schemas"]["RunNo"];
            continuity?: components["schemas"]["Continuity"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What they do not include */
            left: components["schemas"]["LeftBehind"][];
            session_ids: components["schemas"]["SessionId"][];
            sessions: components["schemas"]["ForkRow"][];
        };
        /** @description The origin of a fork. */
        ForkedFrom: {
            as_of_run: components["schemas"]["RunNo"];
            session_id: components["schemas"]["SessionId"];
        };
        /** @description Forks to make. */
        ForkRequest: {
            /**
             * Format: int32
             * @description Number of forks. Default: 1
             * @default 1
             * @example 3
             */
            count?: number;
            /**
             * @description End them with the calling process, as for a new session. Default: forks without a name
             *     end with the same process as their original
             */
            ends_with_caller?: boolean | null;
            files?: ("share" | "copy") & Record<string, unknown>;
            /** @description Their name */
            name?: string | null;
            /** @description Wait for active runs instead of refusing */
            wait?: boolean;
        };
        ForkRow: {
            session_id: components["schemas"]["SessionId"];
            work_dir: string;
        };
        /** @description The server is running */
        Health: {
            /** @description `ok` */
            status: string;
            version: string;
        };
        /** @description What was run */
        HistoryRow: components["schemas"]["Remarks"] & {
            as_of_run?: components["schemas"]["RunNo"] | null;
            command: string;
            /**
             * Format: int64
             * @description Bytes of the command, where it was cut.
             */
            command_bytes?: number | null;
            /** Format: int64 */
            duration_ms: number;
            /** Format: int64 */
            duration_us?: number | null;
            /** @description The kind of event, if it is not a run. */
            event?: string | null;
            /** Format: int32 */
            exit_code: number;
            from_session?: components["schemas"]["SessionId"] | null;
            /** @description The remarks are in a file of their own. */
            has_value_file?: boolean;
            interrupted?: boolean;
            kernel: string;
            language: components["schemas"]["Language"];
            run: components["schemas"]["RunNo"];
            /** Format: int64 */
            stderr_bytes?: number;
            /**
             * Format: int64
             * @description Bytes written by its end.
             */
            stdout_bytes?: number;
            timed_out?: boolean;
            timestamp: string;
        };
        /** @description An imported agent */
        ImportedAgent: {
            agent: components["schemas"]["AgentInfo"];
            session: components["schemas"]["Restored"];
        };
        /** @description Input for a run */
        Input: {
            run: components["schemas"]["RunNo"];
            /**
             * Format: int64
             * @description Bytes that the run has not read yet
             */
            unread: number;
        };
        InputRequest: {
            /** @description Text for the run's stdin */
            data?: string;
            encoding?: components["schemas"]["Encoding"] | null;
            /** @description Close stdin after this */
            eof?: boolean;
        } & ({
            /** @enum {string|null} */
            encoding?: "utf8" | null;
        } | {
            data?: string;
        });
        /** @description The result of an interrupt */
        Interrupted: {
            /** @description Whether something was running */
            interrupted: boolean;
            run?: components["schemas"]["RunNo"] | null;
        };
        InterruptRequest: {
            /**
             * Format: int64
             * @description The run to interrupt. Default: the current one
             */
            run?: number | null;
        };
        /** @description A port that a job listens on */
        JobPort: {
            address: string;
            /** Format: int32 */
            port: number;
            /** @description tcp or udp */
            protocol: components["schemas"]["Transport"];
        };
        /** @description A background process and its descendants */
        JobRow: {
            command: string;
            /**
             * Format: int64
             * @description CPU time of all its processes, including ended ones
             */
            cpu_ms: number;
            /**
             * Format: double
             * @description Average since its start; absent in the first second
             */
            cpu_percent?: number;
            language?: components["schemas"]["Language"] | null;
            /**
             * Format: int64
             * @description Resident memory of all its processes
             */
            memory_bytes: number;
            /** Format: int32 */
            pid: number;
            ports: components["schemas"]["JobPort"][];
            /** Format: int64 */
            processes: number;
            run?: components["schemas"]["RunNo"] | null;
            started_at: string;
            /** @description running or stopped */
            state: components["schemas"]["JobState"];
        };
        /** @enum {string} */
        JobState: "running" | "stopped" | "unknown";
        KernelStatus: {
            language: components["schemas"]["Language"];
            /** Format: int32 */
            pid: number;
        };
        /** @description Keys for a terminal. */
        KeysRequest: {
            /**
             * @description Text is typed as it is; other keys are named in angle brackets:
             *     `<Enter>`, `<Esc>`, `<Tab>`, `<Up>`, `<PageDown>`, `<F1>`, `<C-c>`,
             *     `<M-x>`; a literal `<` is `<lt>`
             * @example ihello<Esc>:wq<Enter>
             */
            keys: string;
            settle?: components["schemas"]["Span"] | null;
            wait?: components["schemas"]["Span"] | null;
            /** @description Then wait until this regular expression is found on the screen */
            wait_for?: string | null;
        };
        /**
         * @description What a kernel speaks. A session has at most one live kernel per language.
         * @enum {string}
         */
        Language: "bash" | "sh" | "zsh" | "python" | "node";
        /**
         * @description bash (or shell), sh (dash), zsh, python (python3) or node (javascript, js)
         * @enum {string}
         */
        LanguageName: "bash" | "shell" | "sh" | "dash" | "zsh" | "python" | "python3" | "node" | "javascript" | "js";
        /** @description Changes that were applied to the real directory */
        LayerApplied: {
            applied: string[];
            /** @description What was skipped, and why */
            skipped: components["schemas"]["SkippedChange"][];
        };
        /** @description A path that differs from the real directory */
        LayerChange: {
            /** @description Not text, or too large to show */
            binary: boolean;
            change: components["schemas"]["ChangeSort"];
            /**
             * @description How the real directory has changed here since the session's own change; `apply`
             *     refuses it
             */
            conflict?: string;
            /** Format: int64 */
            deletions: number;
            /** @description With `renamed`: the old path */
            from?: string;
            /** Format: int64 */
            insertions: number;
            /** @description Permissions in the layer */
            mode?: string;
            /** @description Permissions in the real directory, such as `0644` */
            old_mode?: string;
            /**
             * Format: int64
             * @description Bytes in the real directory
             */
            old_size?: number;
            /** @description Relative to the workspace; quoted as by git if it is not plain text */
            path: string;
            /**
             * Format: int64
             * @description Bytes in the layer
             */
            size?: number;
            /** @description The type in the session; for a deleted path, the old type */
            type: components["schemas"]["FileType"];
        };
        /** @description The changes in a session's layer */
        LayerDiff: {
            /** @description The changed paths, sorted */
            changes: components["schemas"]["LayerChange"][];
            /**
             * Format: int64
             * @description Lines
             */
            deletions: number;
            /** @description A unified diff as git writes it; with `stat`, a table of the paths */
            diff: string;
            /**
             * Format: int64
             * @description Lines
             */
            insertions: number;
            /** @description What could not be read */
            skipped: components["schemas"]["SkippedChange"][];
            /** @description The text was cut; ask for fewer paths */
            truncated: boolean;
        };
        /** @description Discarded changes */
        LayerDiscarded: {
            discarded: string[];
            /** @description What was skipped, and why */
            skipped: components["schemas"]["SkippedChange"][];
        };
        /** @description The layer and the private directories together */
        LayerLimit: {
            held_by: string;
            /** Format: int64 */
            limit_bytes: number;
            /**
             * Format: int64
             * @description Writes that failed with `No space left on device`
             */
            refused?: number;
            /**
             * Format: int64
             * @description As of the last check
             */
            used_bytes?: number | null;
        };
        /** @description Something that could not be saved or copied. */
        LeftBehind: {
            language?: components["schemas"]["Language"] | null;
            name: string;
            reason: string;
        };
        /**
         * @description What can be done with a path. Each level includes the ones before it.
         * @enum {string}
         */
        Level: "none" | "view" | "read" | "write";
        /** @enum {string} */
        LimitedResource: "memory" | "pids" | "layer";
        /**
         * @description What may be used of the machine. Nothing said is nothing limited, beyond
         *     what every sandbox has.
         */
        Limits: {
            /**
             * Format: double
             * @description Cores' worth of time: 1.5 is one and a half.
             */
            cpus?: number | null;
            /**
             * Format: int64
             * @description The layer, `/tmp` and the other private directories together.
             */
            layer_bytes?: number | null;
            /** Format: int64 */
            memory_bytes?: number | null;
            /**
             * Format: int64
             * @description Open files of each process.
             */
            open_files?: number | null;
            /**
             * Format: int64
             * @description Processes and threads.
             */
            pids?: number | null;
        };
        /** @description The limits of a sandbox, and what is used of them. Absent ones are not limited */
        LimitsView: {
            cpus?: components["schemas"]["CpuLimit"];
            layer?: components["schemas"]["LayerLimit"];
            memory?: components["schemas"]["MemoryLimit"];
            open_files?: components["schemas"]["FilesLimit"];
            pids?: components["schemas"]["PidsLimit"];
        };
        /** @description All programs together, unless it is held by an rlimit: then each by itself */
        MemoryLimit: {
            /** @description `cgroup v1`, `cgroup v2` or `rlimit` */
            held_by: string;
            /**
             * Format: int64
             * @description Processes that were killed for it
             */
            kills?: number;
            /** Format: int64 */
            limit_bytes: number;
            /** Format: int64 */
            peak_bytes?: number | null;
            /**
             * Format: int64
             * @description Without memory that the system can reclaim at once; null if unknown
             */
            used_bytes?: number | null;
        };
        /** @description A limit of a sandbox that a run has met */
        MetLimit: {
            evidence: components["schemas"]["Evidence"];
            /**
             * Format: int64
             * @description Bytes, or processes and threads
             */
            limit: number;
            resource: components["schemas"]["LimitedResource"];
        };
        ModelFailure: {
            fault: components["schemas"]["ModelFault"];
            message: string;
            /**
             * Format: int64
             * @description How long to wait before the next request.
             */
            retry_after_ms?: number | null;
        };
        /**
         * @description The kind of failure: a stable code.
         * @enum {string}
         */
        ModelFault: "bad_key" | "unknown_model" | "bad_request" | "too_long" | "rate_limited" | "unavailable" | "unreachable" | "bad_certificate" | "broken" | "nonsense" | "crashed" | "moved";
        /**
         * @description The supported formats.
         * @enum {string}
         */
        ModelFormat: "chat-completions" | "responses" | "messages";
        /** @description An answer of a model. */
        ModelReply: {
            blocks: components["schemas"]["ReplyBlock"][];
            /** @description The model's own name. */
            model?: string;
            stop: components["schemas"]["ReplyStop"];
            usage?: components["schemas"]["TokenUsage"];
        };
        /** @description The new place of an agent. */
        MovedAgent: {
            /**
             * Format: int64
             * @description The newest exported run: `Sessile-As-Of-Run` of the export
             */
            as_of_run?: number | null;
            /**
             * Format: int64
             * @description The length of the exported thread: `Sessile-Entries` of the export. If the thread has
             *     grown since, the request is refused
             */
            entries: number;
            /** @description Its session on that server */
            session_id: string;
            /**
             * @description The URL of that server, for clients that ask here
             * @example https://sessile.example
             */
            url: string;
        };
        /** @description The new place of an agent. */
        MovedTo: {
            /** @description Its session on that server. */
            session_id: string;
            /** @description The URL of that server, as given by the client that moved it. */
            url: string;
        };
        MoveRequest: {
            encoding?: components["schemas"]["Encoding"] | null;
            from: string;
            /** @description Replace an existing file */
            overwrite?: boolean;
            /** @description The new path, including the name */
            to: string;
        };
        Network: ("none" | "full") | string[];
        /** @description A policy as it was written: what is missing comes from what it extends. */
        NewPolicy: {
            /** @description Directories of the host beside the workspace. */
            binds?: components["schemas"]["Bind"][];
            files?: components["schemas"]["FileMode"] | null;
            /** @description What may be used of the machine. */
            limits?: components["schemas"]["Limits"];
            network?: components["schemas"]["Network"] | null;
            /** @description Which level a path of the workspace has. */
            permissions?: components["schemas"]["Rule"][];
            preset?: components["schemas"]["PresetName"] | null;
            /** @description Root of its own user namespace inside, instead of `agent`. */
            root?: boolean | null;
            /** @description Another system tree than the host's. */
            rootfs?: string | null;
        };
        /** @description A task for an agent. */
        NewTask: {
            limits?: components["schemas"]["TaskLimits"] | null;
            /**
             * @description The task
             * @example Create app.py
             */
            text: string;
        };
        /** @description Something that was not saved or restored */
        NotCarried: {
            language?: components["schemas"]["Language"];
            name: string;
            reason: string;
        };
        /** @description A command without a session. */
        OnceRequest: {
            /**
             * @description The command or code
             * @example echo hello
             */
            command: string;
            /** @description The directory to run in */
            cwd?: string | null;
            /** @description Environment variables */
            env?: components["schemas"]["Environment"];
            language?: components["schemas"]["LanguageName"] | null;
            max_output?: components["schemas"]["Size"] | null;
            no_output_timeout?: components["schemas"]["Span"] | null;
            /** @description Stdin of the command */
            stdin?: string | null;
            terminal?: components["schemas"]["Terminal"] | null;
            timeout?: components["schemas"]["Span"] | null;
        };
        /** @description The output of a run from a cursor on */
        Output: {
            continuity?: components["schemas"]["Continuity"];
            /**
             * @description The cursor for the next call
             * @example 12-0
             */
            cursor: string;
            encoding?: components["schemas"]["Encodings"];
            notes?: string[];
            /** @description queued, running, exited (something may still write) or closed */
            phase?: components["schemas"]["RunPhase"];
            /** @description Set while it is queued */
            queued?: components["schemas"]["Queued"];
            run: components["schemas"]["RunNo"];
            running: boolean;
            stderr: string;
            stdout: string;
            /** @description It waits in a read of its stdin, and has read all its input */
            waiting_for_input?: boolean;
        };
        /** @description One stream, or both */
        OutputAnswer: components["schemas"]["OutputPiece"] | components["schemas"]["Output"];
        /** @description Output of one stream from an offset on */
        OutputPiece: {
            data: string;
            /** @description Set if the bytes are not text */
            encoding?: components["schemas"]["BytesEncoding"];
            /**
             * Format: int64
             * @description The offset for the next call
             */
            next: number;
            /** @description queued, running, exited (something may still write) or closed */
            phase: components["schemas"]["RunPhase"];
        };
        /** @description Processes and threads */
        PidsLimit: {
            held_by: string;
            /** Format: int64 */
            limit: number;
            /**
             * Format: int64
             * @description Processes that could not be started for it
             */
            refused?: number;
            /** Format: int64 */
            used?: number | null;
        };
        Position: {
            /** Format: int32 */
            col: number;
            /** Format: int32 */
            row: number;
        };
        /**
         * @description The presets, as the API describes them.
         * @enum {string}
         */
        PresetName: "view-only" | "read-only" | "agent-safe" | "development" | "full-access";
        /** @description The place of a run in the queue */
        Queued: {
            /**
             * @description The active run. Absent while the interpreter starts, or during an operation on the
             *     whole session
             */
            behind?: components["schemas"]["Behind"];
            /**
             * Format: int64
             * @description 1 is the next run
             */
            place: number;
        };
        /** @description The server is ready */
        Readiness: {
            /** @description `ready` */
            status: string;
        };
        /** @description Remarks on a run, besides its output. */
        Remarks: {
            error?: components["schemas"]["RunError"] | null;
            jobs_ended?: components["schemas"]["EndedJob"][];
            limits_met?: components["schemas"]["MetLimit"][];
            notes?: string[];
            result?: components["schemas"]["RunValue"] | null;
        };
        /** @description A path that was removed */
        RemovedFile: {
            removed: boolean;
        };
        /** @description A new name for a session. */
        RenameRequest: {
            /**
             * @description 1 to 100 letters, digits, spaces and -_.:/, not beginning with `sess_`; `null` removes
             *     the name
             * @example web
             */
            name: string | null;
        };
        ReplyBlock: {
            text: string;
            /** @enum {string} */
            type: "text";
        } | (components["schemas"]["ToolCall"] & {
            /** @enum {string} */
            type: "call";
        }) | {
            /** @enum {string} */
            type: "opaque";
            value: unknown;
            wire: components["schemas"]["ModelFormat"];
        };
        /**
         * @description Why the model stopped.
         * @enum {string}
         */
        ReplyStop: "done" | "calls" | "length" | "refused";
        /** @description A session with fresh kernels */
        Reset: {
            continuity?: components["schemas"]["Continuity"];
            session_id: components["schemas"]["SessionId"];
            /** @example reset */
            status: string;
        };
        /** @description A terminal with another size */
        Resized: {
            /** Format: int32 */
            cols: number;
            /** Format: int32 */
            rows: number;
            run: components["schemas"]["RunNo"];
        };
        /** @description A restored session */
        Restored: {
            /** @description The newest run in it */
            as_of_run: components["schemas"]["RunNo"];
            command: string;
            files?: components["schemas"]["SavedFilesRow"];
            kernels: components["schemas"]["RestoredKernel"][];
            /** @description What was not restored */
            left: components["schemas"]["NotCarried"][];
            /** @description The session that was saved */
            restored_from: components["schemas"]["SessionId"];
            saved_at: string;
            session_id: components["schemas"]["SessionId"];
            status: string;
            work_dir: string;
        };
        RestoredKernel: {
            as_of_run: components["schemas"]["RunNo"];
            /**
             * Format: int64
             * @description Number of saved names, for languages that save them one by one
             */
            carried?: number | null;
            language: components["schemas"]["Language"];
            /** @description The interpreter's version, if known */
            version?: string | null;
        };
        /** @description The effect of a rewind on the workspace */
        RestoredRow: {
            /** @description The checkpoint with the files before the rewind */
            before?: string | null;
            problems: components["schemas"]["LeftBehind"][];
            /** Format: int64 */
            removed: number;
            /** Format: int64 */
            written: number;
        };
        /**
         * @description The model failed, and will be asked again: the data of the event `retry`. Words since the
         *     last entry no longer count
         */
        RetryEvent: {
            /**
             * Format: int64
             * @description Time until the next attempt
             */
            after_ms: number;
            /**
             * Format: int32
             * @description The attempt that has failed: 1, 2, …
             */
            attempt: number;
            failure: components["schemas"]["ModelFailure"];
        };
        /** @description The target of a rewind. */
        RewindAgent: {
            /**
             * Format: int64
             * @description The last step to keep; 0: none
             */
            step: number;
        };
        RewindRequest: {
            /**
             * @description The checkpoint
             * @example before-refactoring
             */
            checkpoint?: string | null;
            /** @description Do not restore the files of the checkpoint */
            keep_files?: boolean;
            /**
             * Format: int64
             * @description Undo this many runs, in a session that was started with `auto`
             */
            runs?: number | null;
            /** @description Wait for active runs instead of refusing */
            wait?: boolean;
        } & ({
            checkpoint?: null;
        } | {
            runs?: null;
        });
        /** @description A rewound session */
        Rewound: {
            /** @description The newest run in the session's state now */
            as_of_run: components["schemas"]["RunNo"];
            /** @example before-refactoring */
            checkpoint: string;
            continuity?: components["schemas"]["Continuity"];
            files?: components["schemas"]["RestoredRow"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What was not undone or not restored */
            left: components["schemas"]["LeftBehind"][];
            /** @description The number of the rewind in the history */
            run: components["schemas"]["RunNo"];
            /** @description The undone runs */
            undone: components["schemas"]["RunNo"][];
        };
        /** @description The result of an agent's rewind */
        RewoundAgent: components["schemas"]["ThreadRewind"] & {
            /** @description The rewind of the session; absent if nothing was run since */
            session?: components["schemas"]["Rewound"];
            session_id: components["schemas"]["SessionId"];
        };
        /** @description One rule. */
        Rule: {
            pattern: string;
            permission: components["schemas"]["Level"];
            /**
             * Format: int32
             * @description The highest wins; 0 if not given.
             */
            priority?: number | null;
            type?: components["schemas"]["RuleType"] | null;
        };
        /**
         * @description What a pattern stands for.
         * @enum {string}
         */
        RuleType: "glob" | "directory" | "file";
        /** @description What the code raised. */
        RunError: {
            message: string;
            type: string;
        };
        /**
         * Format: int64
         * @description Number of a run in its session: 1, 2, 3, … Zero stands for "before the
         *     first run" where a moment in the session's life is meant.
         */
        RunNo: number;
        /** @enum {string} */
        RunPhase: "queued" | "running" | "exited" | "closed";
        /** @description A finished run */
        RunResult: {
            /** @description The run whose state a restored kernel has */
            as_of_run?: components["schemas"]["RunNo"];
            continuity?: components["schemas"]["Continuity"];
            /** @description Richer forms of the value, by MIME type */
            data?: Record<string, unknown>;
            encoding?: components["schemas"]["Encodings"];
            /** @description What the code raised: its `type` and `message` */
            error?: components["schemas"]["RunError"];
            /** Format: double */
            execution_time_ms: number;
            /** Format: int32 */
            exit_code: number;
            interrupted?: boolean;
            /** @description Jobs of a shell that have ended since the previous run */
            jobs_ended?: components["schemas"]["EndedJob"][];
            /** @description kept, restarted, restored or fresh */
            kernel: string;
            language: components["schemas"]["Language"];
            /** @description Limits of its sandbox that it has reached */
            limits_met?: components["schemas"]["MetLimit"][];
            notes?: string[];
            /** @description The answer to an earlier request with the same Idempotency-Key */
            repeated?: boolean;
            /** @description The value of the last expression */
            result?: string;
            run: components["schemas"]["RunNo"];
            /** @description Always false; distinguishes a result from the output of an active run */
            running?: boolean;
            stderr: string;
            stdout: string;
            timed_out: boolean;
            truncated?: components["schemas"]["Truncations"];
        };
        /** @description A run in a list */
        RunRow: {
            command: string;
            /** Format: int64 */
            duration_ms?: number;
            /** @description The kind of event, if it is not a run: `rewind` */
            event?: string;
            /** Format: int32 */
            exit_code?: number;
            interactive?: boolean;
            interrupted?: boolean;
            language: components["schemas"]["Language"];
            /** @description Notes of an event */
            notes?: string[];
            /** @description queued, running, exited (something may still write) or closed */
            phase: components["schemas"]["RunPhase"];
            /** @description Set while it is queued */
            queued?: components["schemas"]["Queued"];
            run: components["schemas"]["RunNo"];
            /** @description It has a terminal */
            terminal?: boolean;
            timed_out?: boolean;
            /** @description When it began */
            timestamp?: string | null;
            /** @description It waits in a read of its stdin, and has read all its input */
            waiting_for_input?: boolean;
        };
        /** @description A request of the `runtime` tool. */
        RuntimeRequest: {
            /** @enum {string} */
            action: "exec" | "eval" | "state" | "reset" | "history";
            /** @description Include inherited, unchanged variables (state) */
            all?: boolean;
            /**
             * Format: int32
             * @description If this call starts the session: how many checkpoints before runs are kept
             */
            auto?: number;
            /** @description auto: include the workspace's files */
            auto_files?: boolean;
            /** @description The command or code (exec and eval) */
            command?: string;
            env?: {
                [key: string]: string;
            };
            language?: components["schemas"]["LanguageName"];
            /**
             * Format: int64
             * @description Maximum number of entries (history)
             */
            limit?: number;
            /**
             * Format: int64
             * @description Bytes of output in the answer. Default: 16000
             */
            max_output?: number;
            /**
             * Format: int64
             * @description Interrupt the command when it has written nothing for this long
             */
            no_output_timeout_ms?: number;
            /**
             * Format: int64
             * @description Cancel the run if it has not begun after this long; 0: never
             */
            queue_timeout_ms?: number;
            /** @description Output byte for byte, with colours and redrawn progress bars */
            raw?: boolean;
            /** @description Distinguishes sessions of one workspace */
            session_key?: string;
            stdin?: string;
            /**
             * Format: int64
             * @description Interrupt the command this long after it has begun; 0: never
             */
            timeout_ms?: number;
            /** @description The directory of the session */
            workspace?: string;
        };
        /** @description The value of a run's last expression. */
        RunValue: {
            /** @description Richer forms by MIME type, as JSON text. */
            data_json?: string | null;
            text: string;
        };
        /** @description A sandbox: a preset or a policy. */
        SandboxChoice: boolean | components["schemas"]["PresetName"] | components["schemas"]["NewPolicy"];
        /** @description A saved session */
        Saved: {
            /** @description The newest run in it */
            as_of_run: components["schemas"]["RunNo"];
            /** Format: int64 */
            bytes: number;
            continuity?: components["schemas"]["Continuity"];
            files?: components["schemas"]["SavedFilesRow"];
            kernels: components["schemas"]["SavedKernel"][];
            /** @description What could not be saved */
            left: components["schemas"]["NotCarried"][];
            path: string;
            session_id: components["schemas"]["SessionId"];
        };
        /**
         * Format: binary
         * @description A saved session's bytes.
         */
        SavedFile: string;
        /** @description The files of a saved session */
        SavedFilesRow: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            directories: number;
            /** @description Examples of those */
            examples: components["schemas"]["NotCarried"][];
            /** Format: int64 */
            files: number;
            /**
             * Format: int64
             * @description How many were left out
             */
            left_out: number;
            /** @description Whether they were restored */
            restored?: boolean;
            /** Format: int64 */
            symlinks: number;
        };
        SavedKernel: {
            as_of_run: components["schemas"]["RunNo"];
            /**
             * Format: int64
             * @description Number of saved names, for languages that save them one by one
             */
            carried?: number;
            language: components["schemas"]["Language"];
        };
        /** @description A file to save a session to. */
        SaveRequest: {
            /** @description Include the files of the session's directory */
            files?: boolean;
            /**
             * @description The path, in an allowed directory; an existing file is replaced
             * @example work.sessile
             */
            path: string;
            /** @description Wait for active runs instead of refusing */
            wait?: boolean;
        };
        /** @description The progress of saving. */
        SaveState: {
            as_of_run?: components["schemas"]["RunNo"] | null;
            /** @description Why the last attempt failed, if it did. */
            error?: string | null;
            saved_at?: string | null;
        };
        /** @description What a terminal shows */
        ScreenAnswer: {
            cursor?: components["schemas"]["Position"] | null;
            /** @description A full-screen program uses the alternate screen */
            is_alternate: boolean;
            /** @description With `cells`: the `spans` of each line, by style */
            lines?: Record<string, unknown>[];
            /**
             * Format: int64
             * @description Grows with every change; absent after the run's end
             */
            revision?: number;
            run: components["schemas"]["RunNo"];
            running: boolean;
            size: components["schemas"]["ScreenSize"];
            /** @description The lines of the screen, without trailing blanks */
            text: string;
            title: string;
            /**
             * @description The outcome of the wait, if any: matched, settled, ended (the run ended before a
             *     match) or timed_out
             */
            wait?: string;
            /** @description It waits in a read of its terminal, and has read all input */
            waiting_for_input: boolean;
        };
        /** @description A terminal's size in characters */
        ScreenSize: {
            /** Format: int32 */
            cols: number;
            /** Format: int32 */
            rows: number;
        };
        /** @description One event of a `text/event-stream` */
        ServerSentEvent: {
            /** @description JSON */
            data: string;
            event?: string;
            /** @description The value of `Last-Event-ID` for reconnecting */
            id?: string;
        };
        /** @description `sess_` and 4 to 64 lower-case hex digits. */
        SessionId: string;
        /** @description A session's metadata */
        SessionInfo: {
            auto?: components["schemas"]["Auto"] | null;
            command: string;
            /** Format: int64 */
            command_timeout_ms: number;
            created_at: string;
            durable?: components["schemas"]["Durable"] | null;
            ended_at?: string | null;
            /** @description Why it ended: asked for, idle, or with its program. */
            ended_by?: string | null;
            env?: {
                [key: string]: string;
            };
            /** Format: int64 */
            execution_count: number;
            forked_from?: components["schemas"]["ForkedFrom"] | null;
            /** Format: int64 */
            idle_timeout_ms: number;
            /** @description Only runs keep it from being idle, not jobs or attached clients. */
            idle_without_runs?: boolean;
            /** Format: int32 */
            keeper_pid?: number | null;
            language: components["schemas"]["Language"];
            last_executed_at?: string | null;
            /** @description What could not be written to its files when it ended. */
            lost_at_end?: string[];
            /** Format: int64 */
            max_history: number;
            /**
             * Format: int64
             * @description Maximum number of queued runs, if limited.
             */
            max_queue?: number | null;
            /** @description Its name. */
            name?: string | null;
            /** @description How its sandbox is weaker than requested, if it is. */
            notes?: string[];
            /** Format: int64 */
            output_cap: number;
            /** @description The token that it was created with, if any. */
            owner?: string | null;
            restored_from?: components["schemas"]["SessionId"] | null;
            /** @description Its complete sandbox policy. */
            sandbox?: Record<string, unknown> | null;
            session_id: components["schemas"]["SessionId"];
            /** @description The key that distinguishes it from other sessions of its workspace. */
            session_key?: string | null;
            status: components["schemas"]["SessionStatus"];
            work_dir: string;
            /** @description The workspace (and key) whose default session this is, if any. */
            workspace?: string | null;
        };
        SessionLimits: {
            output?: components["schemas"]["Size"] | null;
        };
        /** @description A page of sessions, newest first */
        SessionPage: {
            next?: components["schemas"]["SessionId"] | null;
            sessions: components["schemas"]["SessionInfo"][];
        };
        /** @enum {string} */
        SessionStatus: "starting" | "active" | "terminated" | "lost" | "unknown";
        /** @description A signal sent to a run */
        Signalled: {
            /**
             * Format: int64
             * @description Number of processes that got it
             */
            processes: number;
            run: components["schemas"]["RunNo"];
        };
        /** @description A signal sent to a job */
        SignalledJob: {
            /** Format: int32 */
            pid: number;
            /**
             * Format: int64
             * @description Number of processes that got it
             */
            processes: number;
        };
        /** @description A signal: "INT", "TERM", "KILL", …, or its number */
        SignalName: string | number;
        SignalRequest: {
            signal: components["schemas"]["SignalName"];
        };
        /** @description A number of bytes: 1048576, "1MiB" or "64K" (units are powers of 1024) */
        Size: number | string;
        /** @description A skipped path */
        SkippedChange: {
            path: string;
            reason: string;
        };
        /** @description A skipped entry of an archive */
        SkippedFile: {
            encoding?: components["schemas"]["BytesEncoding"];
            path: string;
            reason: string;
        };
        /** @description A duration: "30s", "500ms", "2h", or a number of seconds. At most a year */
        Span: string | number;
        /** @description A new agent: a session with a thread, and a model that works in it. */
        StartAgent: {
            /** @description Tools whose calls wait for approval; `*` stands for all */
            approve?: string[];
            /**
             * Format: int32
             * @description Number of steps that can be undone, including files; 0: none. Default: 10, without
             *     files if the workspace is large
             */
            checkpoints?: number | null;
            /** @description Save its session in idle time. Default: the server's setting */
            durable?: boolean | null;
            /** @description Environment variables of its session */
            env?: components["schemas"]["Environment"];
            /** @description Instructions for the model */
            instructions?: string | null;
            /** @description The model. Default: the server's only one */
            model?: string | null;
            /** @description A name for its session */
            name?: string | null;
            sandbox?: components["schemas"]["SandboxChoice"] | null;
            /** @description An existing session. Default: a new one */
            session?: string | null;
            /** @description Its working directory */
            workspace?: string | null;
        };
        /** @description A started session */
        Started: {
            command: string;
            /** @description How its sandbox is weaker than requested */
            notes?: string[];
            session_id: components["schemas"]["SessionId"];
            status: string;
            work_dir: string;
        };
        StartSession: {
            auto?: components["schemas"]["AutoCheckpoints"] | null;
            command_timeout?: components["schemas"]["Span"] | null;
            /** @description The directory to start in, relative to the workspace */
            cwd?: string | null;
            /** @description Save it in idle time, so that it survives a reboot. Default: the server's setting */
            durable?: boolean | null;
            /**
             * @description End it, and its forks without a name, when the calling process ends for any reason.
             *     For programs on the same machine, over the local server's socket
             */
            ends_with_caller?: boolean;
            /** @description Environment variables */
            env?: components["schemas"]["Environment"];
            /**
             * @description Start with the state of this session (`sess_…`), or of a pool by its name: imports are
             *     done, variables are set. History, run numbers, directory and settings are new
             */
            from?: string | null;
            idle_timeout?: components["schemas"]["Span"] | null;
            /** @description Count only runs for `idle_timeout`, not jobs or attached clients */
            idle_without_runs?: boolean;
            /** @description Limits of the session */
            limits?: components["schemas"]["SessionLimits"];
            /**
             * Format: int64
             * @description Runs to keep in the history
             */
            max_history?: number | null;
            /** @description Its name */
            name?: string | null;
            sandbox?: components["schemas"]["SandboxChoice"] | null;
            /**
             * @description bash, sh, dash, zsh, python3 or node, or the path of one
             * @example bash
             */
            shell?: string | null;
            /** @description The workspace of the session */
            workspace?: string | null;
        } & ({
            from?: null;
        } | {
            shell?: null;
        });
        /** @description The state of a session */
        State: Record<string, unknown> & {
            durable?: components["schemas"]["Durable"];
            /** @description The newest entries */
            history: components["schemas"]["HistoryRow"][];
            session_id: components["schemas"]["SessionId"];
            status: components["schemas"]["SessionStatus"];
        };
        /** @description A checkpoint of the session before a step. */
        StepCheckpoint: {
            /** @description Why no checkpoint could be taken. */
            error?: string;
            /** @description Whether it includes the files of the workspace. */
            files?: boolean;
            /** @description The name of the checkpoint; absent if none could be taken. */
            name?: string;
            /** Format: int64 */
            step: number;
        };
        TaskBegun: {
            /** @description What happened to the session before */
            continuity: components["schemas"]["AgentContinuity"];
            task: components["schemas"]["TaskNo"];
        };
        /** @enum {string} */
        TaskEnded: "done" | "limit" | "cancelled" | "failed" | "refused";
        /** @description How a task ended. */
        TaskEnding: {
            /** @enum {string} */
            ended: "done";
            /** @description The model's answer was too long, and is cut off. */
            is_cut_off?: boolean;
            output: string;
        } | {
            /** @enum {string} */
            ended: "limit";
            limit: components["schemas"]["TaskLimit"];
        } | {
            /** @enum {string} */
            ended: "cancelled";
        } | {
            /** @enum {string} */
            ended: "failed";
            failure: components["schemas"]["ModelFailure"];
        } | {
            /** @enum {string} */
            ended: "refused";
            output: string;
        };
        /** @description The state of a task */
        TaskInfo: {
            /** @description What happened to the session before or during the task */
            continuity: components["schemas"]["AgentContinuity"];
            ended?: components["schemas"]["TaskEnded"];
            failure?: components["schemas"]["ModelFailure"];
            /** @description The model's answer was too long, and is cut off */
            is_cut_off?: boolean;
            limit?: components["schemas"]["TaskLimit"];
            /** @description The model's final answer */
            output?: string;
            running: boolean;
            session_id: components["schemas"]["SessionId"];
            /** @description Steps, tokens and cost, once it has ended */
            spent?: components["schemas"]["TaskSpent"];
            /** @description A rewind has undone at least a part of it */
            taken_back?: boolean;
            task: components["schemas"]["TaskNo"];
            /** @description The task's text */
            text: string;
            thread_id: components["schemas"]["ThreadId"];
        };
        /**
         * @description The limit that ended a task.
         * @enum {string}
         */
        TaskLimit: "steps" | "tokens" | "time" | "cost";
        TaskLimits: {
            /**
             * Format: int64
             * @description Summarize the conversation when a request had more tokens than this.
             * @default null
             */
            compact_above_tokens?: number | null;
            /**
             * Format: double
             * @description In the currency of `price`.
             * @default null
             */
            max_cost?: number | null;
            /**
             * Format: int32
             * @description Maximum number of requests to the model.
             * @default 100
             */
            max_steps?: number;
            /**
             * Format: int64
             * @default null
             */
            max_time_ms?: number | null;
            /**
             * Format: int64
             * @description Maximum number of tokens, input and output together.
             * @default null
             */
            max_tokens?: number | null;
            /**
             * @default {
             *       "input": 0,
             *       "cached_input": 0,
             *       "output": 0
             *     }
             */
            price?: components["schemas"]["TokenPrice"];
        };
        TaskList: {
            /** @description Newest first */
            tasks: components["schemas"]["TaskInfo"][];
        };
        /**
         * Format: int64
         * @description The number of a task in its thread: 1, 2, 3, …
         */
        TaskNo: number;
        /** @description The usage of a task so far. */
        TaskSpent: components["schemas"]["TokenUsage"] & {
            /**
             * Format: double
             * @default 0
             */
            cost?: number;
            /**
             * Format: int32
             * @default 0
             */
            steps?: number;
        };
        /** @description A terminal: true, or its size */
        Terminal: boolean | components["schemas"]["WindowSize"];
        ThreadEntry: components["schemas"]["ThreadEntryKind"] & {
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             */
            at_ms: number;
            /**
             * Format: int64
             * @description 1, 2, 3, … in the order of the file.
             */
            entry: number;
        };
        ThreadEntryKind: {
            /**
             * Format: int64
             * @description Number of tasks in earlier, lost threads; numbering continues after them.
             */
            earlier_tasks?: number;
            forked_from?: components["schemas"]["ThreadId"] | null;
            /** Format: int32 */
            format: number;
            thread: components["schemas"]["ThreadId"];
            /** @enum {string} */
            type: "created";
        } | {
            /** @description What happened to the session before; absent if it was live. */
            continuity?: components["schemas"]["AgentContinuity"];
            /** @description The caller's key for it. */
            key?: string | null;
            limits?: components["schemas"]["TaskLimits"];
            task: components["schemas"]["TaskNo"];
            text: string;
            /** @enum {string} */
            type: "task";
        } | (components["schemas"]["ModelReply"] & {
            /**
             * Format: int64
             * @description 1, 2, 3, … in the thread. A number is not used again after a rewind.
             */
            step?: number;
            task: components["schemas"]["TaskNo"];
        } & {
            /** @enum {string} */
            type: "reply";
        }) | {
            call: string;
            /** @enum {string} */
            type: "approval";
            verdict: components["schemas"]["CallVerdict"];
        } | (components["schemas"]["FileIntent"] & {
            /** @enum {string} */
            type: "intent";
        }) | (components["schemas"]["ToolOutcome"] & {
            /** @enum {string} */
            type: "outcome";
        }) | {
            text: string;
            /** @enum {string} */
            type: "summary";
            usage?: components["schemas"]["TokenUsage"];
        } | (components["schemas"]["TaskEnding"] & {
            /** @enum {string} */
            type: "stopping";
        }) | (components["schemas"]["TaskEnding"] & {
            spent: components["schemas"]["TaskSpent"];
            task: components["schemas"]["TaskNo"];
        } & {
            /** @enum {string} */
            type: "ended";
        }) | (components["schemas"]["StepCheckpoint"] & {
            /** @enum {string} */
            type: "checkpoint";
        }) | (components["schemas"]["ThreadRewind"] & {
            /** @enum {string} */
            type: "rewinding";
        }) | (components["schemas"]["ThreadRewind"] & {
            /**
             * Format: int64
             * @description The number of the rewind in the session's history.
             */
            run?: number;
        } & {
            /** @enum {string} */
            type: "rewound";
        }) | {
            /** @enum {string} */
            type: "not_rewound";
            why: string;
        } | {
            note: string;
            /**
             * Format: int64
             * @description The number of the rewind in the session's history.
             */
            run: number;
            /** @enum {string} */
            type: "session_rewound";
        } | (components["schemas"]["AgentActivity"] & {
            task: components["schemas"]["TaskNo"];
        } & {
            /** @enum {string} */
            type: "activity";
        }) | {
            from_session: string;
            lost?: string[];
            /** @enum {string} */
            type: "imported";
        } | (components["schemas"]["MovedTo"] & {
            /** @enum {string} */
            type: "moved";
        }) | (components["schemas"]["AgentContinuity"] & {
            /** @enum {string} */
            type: "continued";
        });
        /** @description The data of a thread's event: `event` is the entry's `type`, `id` its number */
        ThreadEvent: components["schemas"]["ThreadEntry"] & {
            session_id: components["schemas"]["SessionId"];
        };
        /**
         * @description `thread_` and hex digits. The driver makes it: randomness is I/O.
         * @example thread_1f8a0c2b3d4e5f6071829304
         */
        ThreadId: string;
        /** @description Entries of a thread */
        ThreadPage: {
            entries: components["schemas"]["ThreadEntry"][];
            /**
             * Format: int64
             * @description Set if there are more entries: the value of `after` for them
             */
            next?: number;
        };
        /** @description The extent of a rewind. */
        ThreadRewind: {
            /** @description The session's checkpoint; absent if nothing was run since. */
            checkpoint?: string;
            /**
             * Format: int64
             * @description The last entry that is kept.
             */
            kept: number;
            /**
             * Format: int64
             * @description The last step that is kept; 0: none.
             */
            step: number;
            /** @description Number of undone steps. */
            steps: number[];
            /** @description Number of completely undone tasks. */
            tasks: components["schemas"]["TaskNo"][];
        };
        /** @description The price of a million tokens. */
        TokenPrice: {
            /**
             * Format: double
             * @default 0
             */
            cached_input?: number;
            /**
             * Format: double
             * @default 0
             */
            input?: number;
            /**
             * Format: double
             * @default 0
             */
            output?: number;
        };
        TokenUsage: {
            /**
             * Format: int64
             * @default 0
             */
            cached_tokens?: number;
            /**
             * Format: int64
             * @description All tokens of the request, including cached ones.
             * @default 0
             */
            input_tokens?: number;
            /**
             * Format: int64
             * @default 0
             */
            output_tokens?: number;
        };
        /** @description The arguments of a tool call. */
        ToolArguments: {
            json: unknown;
        } | {
            /** @description Text that is not a JSON object, kept to repeat the conversation unchanged. */
            malformed: string;
        };
        /** @description A tool call by the model. */
        ToolCall: {
            /** @description The model's id for the call. */
            id: string;
            input: components["schemas"]["ToolArguments"];
            tool: string;
        };
        /** @description The outcome of a call. */
        ToolOutcome: {
            /** @description The model's id for the call. */
            call: string;
            is_error?: boolean;
            /**
             * Format: int64
             * @description The run that it started in the session.
             */
            run?: number | null;
            text: string;
        };
        /** @description The activity of sessions */
        Top: {
            sessions: components["schemas"]["TopRow"][];
        };
        /** @description The activity of a session */
        TopRow: components["schemas"]["Usage"] & {
            /**
             * Format: int64
             * @description Time since its last run, if none is active.
             */
            idle_ms?: number | null;
            /** Format: int32 */
            keeper_pid?: number | null;
            kernels: components["schemas"]["KernelStatus"][];
            name?: string | null;
            /** Format: int64 */
            queued: number;
            /** @description Limits and usage of a sandbox. */
            resources?: components["schemas"]["LimitsView"];
            running: components["schemas"]["TopRun"][];
            session_id: components["schemas"]["SessionId"];
            state: components["schemas"]["TopState"];
            work_dir: string;
            workspace?: string | null;
        };
        /** @description An active run. */
        TopRun: {
            /** @description Shortened if it is long. */
            command: string;
            language: components["schemas"]["Language"];
            run: components["schemas"]["RunNo"];
            /** Format: int64 */
            running_ms?: number | null;
            waiting_for_input: boolean;
        };
        /** @enum {string} */
        TopState: "busy" | "idle" | "silent" | "lost" | "ended";
        /** @enum {string} */
        Transport: "tcp" | "udp";
        /** @description A stream whose middle was left out. */
        Truncated: {
            /** Format: int64 */
            dropped_bytes: number;
            /** @description The file with all of it, in the session's directory */
            file: string;
            /** Format: int64 */
            head_bytes: number;
            /**
             * Format: int64
             * @description Bytes kept on disk
             */
            stored_bytes: number;
            /** Format: int64 */
            tail_bytes: number;
            /** Format: int64 */
            total_bytes: number;
        };
        /** @description Parts of long streams that were left out */
        Truncations: {
            stderr?: components["schemas"]["Truncated"];
            stdout?: components["schemas"]["Truncated"];
        };
        UndoRequest: {
            /** @description Do not restore the files of the checkpoint */
            keep_files?: boolean;
            /** @description Wait for active runs instead of refusing */
            wait?: boolean;
        };
        /** @description The result of unpacking an archive */
        UnpackedArchive: {
            /**
             * Format: int64
             * @description Total size of the files
             */
            bytes: number;
            /** Format: int64 */
            directories: number;
            /** Format: int64 */
            files: number;
            /** Format: int64 */
            links: number;
            /**
             * @description The first hundred skipped entries: links that lead out of the workspace, devices,
             *     FIFOs
             */
            skipped: components["schemas"]["SkippedFile"][];
            /** Format: int64 */
            skipped_count: number;
        };
        /** @description The usage of a process tree. */
        Usage: {
            /**
             * Format: double
             * @description Percent of one CPU since the last measurement; absent in the first.
             */
            cpu_percent?: number | null;
            /** Format: int64 */
            memory_bytes: number;
            /** Format: int64 */
            processes: number;
        };
        /** @description A terminal's size in characters. */
        WindowSize: {
            /**
             * Format: int32
             * @example 80
             */
            cols: number;
            /**
             * Format: int32
             * @example 24
             */
            rows: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
