// Generated from docs/openapi.json by `npm run generate`; not to be edited.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The server is there */
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
        /** Counters in the text format of Prometheus */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The server can do its work: the sessions directory can be read */
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
                /** @description It cannot now; try again */
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
        /** All agents */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Make an agent */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Names this request: one with a key that was used before is answered with that one's agent */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** An agent, by its session */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Say whether a call may be carried out */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                        "application/json": components["schemas"]["Taken"];
                    };
                };
                /** @description It cannot now; try again */
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
        /** Stop the task that is under way */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                        "application/json": components["schemas"]["Taken"];
                    };
                };
                /** @description It cannot now; try again */
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
         * What happens in an agent's thread
         * @description An event per entry, with its number as id; with `Last-Event-ID` they go on after
         *     that one. `delta` has words of the model as they come, `retry` says
         *     that it has failed and is asked again, and `approve` names a call that waits; none of
         *     these has an id. The stream ends when nothing is under way.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The last event that was seen */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * An agent as a file
         * @description The body is one file with its session, the files of the workspace, its thread and
         *     how it was made. The headers say in `Sessile-As-Of-Run` the newest run that is in
         *     it, in `Sessile-Entries` how long its thread is, and in `Sessile-Left` how many
         *     things could not be carried. Keys of models are not in it; what the session has in
         *     variables and environment is, secrets included. Refused while a task is not over.
         */
        get: {
            parameters: {
                query?: {
                    /** @description With the files of the session's directory; true when absent */
                    files?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Make agents with the same past
         * @description The session is forked, and each fork has a copy of the thread.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Say that an agent goes on elsewhere
         * @description It takes no more tasks here, and says where it is (410 `agent_moved`); its session
         *     ends. Refused (409 `busy`) when it has gone on since it was exported.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Take an agent back to a step
         * @description Its conversation, its interpreters and its files are as they were right after that
         *     step. What came later stays in the thread, and does not count any more.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The newest tasks of an agent */
        get: {
            parameters: {
                query?: {
                    /** @description How many of the newest tasks; 100 when absent */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * @description It is carried out by the server, whatever becomes of the caller.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Names this request: one with a key that was used before is answered with that one's task */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** What has become of a task */
        get: {
            parameters: {
                query?: {
                    /** @description How long to wait for the task's end */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * An agent's thread
         * @description Everything that its model was shown and did, and what was taken back. As it
         *     happens, the same is at `…/events`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Entries after this one */
                    after?: number;
                    /** @description How many entries; 1000 when absent */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Take back an agent's last task
         * @description As a rewind to the step before it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Make an agent from an exported one
         * @description The body is the file. The agent goes on with the same thread, in a new session.
         *     Importing runs code that is in the file, as the user who runs the server: one that
         *     was not exported from the same sessions directory is refused (403 `untrusted`)
         *     without `trust`.
         */
        post: {
            parameters: {
                query?: {
                    /**
                     * @description Go on in this directory, with the files: it must be new or empty. Where the
                     *     session was when absent, if that may be
                     */
                    cwd?: string;
                    /** @description Save the new session in idle time; as the server was told when absent */
                    durable?: boolean;
                    /**
                     * @description Which of this server's models; the one of the same name, or the only one, when
                     *     absent
                     */
                    model?: string;
                    /** @description What to call its session; as the exported one when absent */
                    name?: string;
                    /**
                     * @description Run what is in the file, and say to the model what its thread says, whoever
                     *     made it
                     */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Run one command in a session of its own, of which nothing is left
         * @description With a key, its result is kept for a minute after the answer, and a request that is
         *     repeated is answered with it, also across the death of a server.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Names this request: one with a key that was used before is answered with that one's result */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Make a session from a saved one
         * @description The body is the file, or `path` names one. Restoring runs code that is in the
         *     file, as the user who runs the server: a file that was not saved from the
         *     same sessions directory is refused (403 `untrusted`) without `trust`.
         */
        post: {
            parameters: {
                query?: {
                    /**
                     * @description Go on in this directory, with the saved files if there are any: then it
                     *     must be new or empty. Where the session was when absent, if that may be
                     */
                    cwd?: string;
                    /** @description Save the new session in idle time; as the server was told when absent */
                    durable?: boolean;
                    /**
                     * @description End it when the calling process has ended, as for a new session, unless it has
                     *     the name of the saved one
                     */
                    ends_with_caller?: boolean;
                    /** @description What to call it; as the saved one when absent */
                    name?: string;
                    /** @description A file of the server's machine, in the place of a body */
                    path?: string;
                    /** @description Run what is in the file, whoever made it */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** List sessions, newest first, ended ones included */
        get: {
            parameters: {
                query?: {
                    /** @description `next` of the page before */
                    after?: string;
                    /** @description Sessions on a page */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * @description With a key, a request that is repeated is answered with the session that the first
         *     one has started, also by another server, and across the death of one.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Names this request: one with a key that was used before is answered with that one's session */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** A session's metadata */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** End a session and everything that it started */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * @description It need not be live. Live sessions of one token have different names (409
         *     `name_taken`); `null` takes the name away.
         */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Bring changes to the real directory
         * @description What has changed there since the session took it over is named in a refusal
         *     (409 `layer_conflict`), and nothing is applied then, unless `force` says
         *     otherwise.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The points that a session can be rewound to, oldest first */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Take a point that the session can be rewound to */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Let go of all checkpoints */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Let go of a checkpoint */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * What the session has changed
         * @description In a sandbox whose files are an `overlay`; else 409 `no_layer`. Paths that the
         *     session may not see or change are not told.
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Paths from the workspace with all that is below them, separated by commas;
                     *     a comma in a name is written `\,`. All of them when absent
                     * @example src,README.md
                     */
                    path?: string;
                    /** @description A table of the paths instead of the text of the changes */
                    stat?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Drop changes: the session sees the real files again */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Run code for the value of its last expression; Python unless said otherwise */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description As for exec */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * The runs of a session as they happen, whoever gave the order
         * @description First those that are not over. `run` for each when it is accepted, with its
         *     number as id; its own events are at `/v1/sessions/{id}/runs/{run}/events`.
         *     With `output=true` instead, what happens in all of them: `started` with the
         *     command, `stdout`, `stderr`, `exited` with the exit code, and `closed` when
         *     nothing can write any more; `cancelled`, with the `code` and `message` of the
         *     error, for a run that never began or whose end nobody knows. `ended` when the
         *     session has ended or is lost. With `Last-Event-ID` they go on after that event.
         */
        get: {
            parameters: {
                query?: {
                    /** @description What the runs write and how they end, too */
                    output?: boolean;
                    /** @description With `output`: begin with the newest so many finished runs */
                    tail?: number;
                };
                header?: {
                    /** @description The last event that was seen */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * @description Answers with the result, or after `wait` with the run's number (202). With
         *     `Accept: text/event-stream` the run's events are streamed instead.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Names this request: one with a key that was used before is answered with that one's run */
                    "Idempotency-Key"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * What is in a directory of the workspace
         * @description With `depth`, and below it. Links are told, and not followed.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How deep: 1 is what is in the directory */
                    depth?: number;
                    /** @description Entries at most; 10000 when absent */
                    limit?: number;
                    /**
                     * @description A directory, relative to the workspace, or absolute and within it; the
                     *     workspace itself when absent
                     */
                    path?: string;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
                    /** @description A directory with all that is in it */
                    recursive?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * A directory with all that is in it, or a file, as a tar
         * @description Names are relative to the directory. Links are in it as links; sockets, FIFOs
         *     and devices are not. It is made as it is read.
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
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Unpack a tar into a directory, which is made if it is not there
         * @description What is in its way is replaced, file by file. Names that lead out of the
         *     directory are refused; links that lead out of the workspace, devices and FIFOs
         *     are left out, and listed in the answer. Owners, and setuid and its like, are
         *     not taken over.
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
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * The content of a file
         * @description `Range: bytes=…` for a part of it (206), `If-None-Match` with its `ETag` for
         *     nothing when it is the same (304).
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
                    /** @description An ETag of before */
                    "If-None-Match"?: string;
                    /** @description One range of bytes */
                    Range?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It is the same as before */
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description It cannot now; try again */
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
         * @description The body is its content, of any size. It is in its place when all of it has
         *     come, and not before: nobody reads half of it, and a body that is cut off
         *     changes nothing. `If-None-Match: *` writes only a file that is not there.
         */
        put: {
            parameters: {
                query: {
                    /**
                     * @description Its permissions in octal, such as `0755`; else those of the file that was
                     *     there
                     */
                    mode?: string;
                    /** @description Make the directories above it */
                    parents?: boolean;
                    /**
                     * @description Relative to the workspace, or absolute and within it
                     * @example notes.txt
                     */
                    path: string;
                };
                header?: {
                    /** @description `*`: only a new file */
                    "If-None-Match"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description It was replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description There was none */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FileEntry"];
                    };
                };
                /** @description It cannot now; try again */
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
        /** Make a directory */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** What is known of a path; of a link, the link itself */
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
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * What happens to the files of a directory
         * @description `ready` first: what happens from then on is told. `created`, `modified` (when
         *     a writer has closed it, or its permissions changed) and `removed`, each with
         *     the `path`; a move is a `removed` and a `created`. `overflow` when more has
         *     happened than could be told: list the directory anew then, as after a
         *     connection that broke. `ended` is the last one: the session has ended.
         */
        get: {
            parameters: {
                query?: {
                    /** @description A directory, relative to the workspace, or absolute and within it */
                    path?: string;
                    /** @description With all directories below it, at most 4096 */
                    recursive?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Make new sessions with the state of this one
         * @description All of them, or none. A request that is sent again makes further ones: there
         *     is no Idempotency-Key here. A run that is going is a reason to refuse it
         *     (409 `busy`), unless `wait` says otherwise.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** What was run, newest last */
        get: {
            parameters: {
                query?: {
                    /** @description The newest so many */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Interrupt a run, or whatever is running, and keep the state */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** What runs have left in the background, oldest first */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Signal a job, or a process of one, and what descends from it */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Where the session's processes listen */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * A request to a server in the session
         * @description Any method, any path, bodies of any length, and WebSockets. The path and the
         *     query are passed on as they are. Neither `Authorization` nor cookies pass, in
         *     either direction. An answer of the session's server has the header
         *     `sessile-port`; one without it is ours.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                    /** @description The rest of the path, as the session's server takes it */
                    path: string;
                    /** @description A port that a process of the session listens on */
                    port: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description The session's server broke off */
                502: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description It cannot now; try again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                /** @description What the session's server answers */
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
        /** Fresh kernels, empty history, same id */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Take a session back to a checkpoint
         * @description To the newest one, the one of that name, or to before the last `runs` runs.
         *     The history tells of it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The runs of a session, newest last: queued, running and finished ones */
        get: {
            parameters: {
                query?: {
                    /** @description The newest so many */
                    limit?: number;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The result of a run, now or when it has finished */
        get: {
            parameters: {
                query?: {
                    /** @description Bytes of each stream that the answer may carry */
                    max_output?: number;
                    /** @description How long to wait for the result, such as `30s` */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * The events of a run
         * @description `started`, `stdout`, `stderr`, `exited` and `closed`, each with an id; with
         *     `Last-Event-ID` they go on after that one.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The last event that was seen */
                    "Last-Event-ID"?: string;
                };
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Give an interactive run something to read */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * @description Answers with the screen after them: when it stands still, or shows what is
         *     waited for. What it showed before does not count.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Output of a run by cursor, live or later
         * @description Of one stream; with `cursor`, of both, as `stdout` and `stderr`, with the
         *     `cursor` for the next call.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Instead of these two: both streams from the `cursor` of another answer on */
                    cursor?: string;
                    /** @description The cursor: `next` of the answer before */
                    from?: number;
                    /** @description Bytes to answer with at the most */
                    max?: number;
                    /** @description stdout (the default) or stderr */
                    stream?: "stdout" | "stderr";
                    /** @description How long to wait when there is nothing yet, such as `30s` */
                    wait?: components["schemas"]["Span"];
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Give the terminal of a run another size */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * What the terminal of a run shows, as a person would see it
         * @description Now, or when it shows what is waited for; also after the run's end. What
         *     became of a wait is in `wait`, and in the header `Sessile-Wait`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description json (the default), text, cells (with colours), svg or png */
                    format?: "json" | "text" | "cells" | "svg" | "png";
                    /** @description Wait until the screen has not changed for this long, such as `200ms` */
                    settle?: components["schemas"]["Span"];
                    /** @description How long to wait at the most; 10 s when absent */
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
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Signal what a run has in the foreground, or what it has left if it has ended */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * A WebSocket for one run
         * @description Its events as JSON with `type` and `id`; it takes `stdin`, `eof`, `keys`,
         *     `signal` and `resize`. With `screen=true`, a terminal that is drawn on already
         *     is joined: first comes `screen`, whose `data` draws it.
         */
        get: {
            parameters: {
                query?: {
                    /** @description The id of the last event that was seen */
                    after?: string;
                    /** @description Refuse all orders */
                    read_only?: boolean;
                    /**
                     * @description Begin with what draws the terminal as it is now, and go on from there,
                     *     instead of with all that was written to it
                     */
                    screen?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * A session as a file
         * @description The body is the file; the headers say in `Sessile-As-Of-Run` the newest run
         *     that is in it, and in `Sessile-Left` how many things could not be carried,
         *     which are listed when it is restored. What the session has in variables and
         *     environment is in it, secrets included.
         */
        get: {
            parameters: {
                query?: {
                    /** @description With the files of the session's directory */
                    files?: boolean;
                    /** @description Wait for runs that are going, instead of refusing */
                    wait?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** Save a session to a file of the server's machine */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The state of the live kernels */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * Take back the last run
         * @description In a session that was started with `auto`. The same as a rewind with
         *     `"runs": 1`.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * A WebSocket for runs of a session, one after the other
         * @description Send `{"type":"exec","command":"…"}`; the run's events come as JSON with
         *     `type` and `id`. While it runs, send `stdin`, `eof`, `keys`, `signal` and
         *     `resize`, with `run` for another one than the last that was begun here. The
         *     `stdout` of a run with a terminal is what a terminal emulator takes. With
         *     `watch=true`, the events are those of all runs of the session, as at
         *     `/v1/sessions/{id}/events?output=true`, and an `exec` is answered with
         *     `accepted` and the run's number.
         */
        get: {
            parameters: {
                query?: {
                    /** @description With `watch`: the id of the last event that was seen */
                    after?: string;
                    /** @description Refuse all orders */
                    read_only?: boolean;
                    /** @description With `watch`: begin with the newest so many finished runs */
                    tail?: number;
                    /** @description Tell what happens in all runs of the session, whoever gave the order */
                    watch?: boolean;
                };
                header?: never;
                path: {
                    /**
                     * @description The session: its id, the beginning of one (four digits or more), or its
                     *     name
                     * @example sess_1f8a
                     */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** The `runtime` tool: its JSON in, its JSON out */
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
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
         * What sessions are doing: runs, CPU and memory, newest session first
         * @description CPU (of one processor) and memory are those of everything that a session has
         *     started. With `Accept: text/event-stream`, the same again and again, each time
         *     as an event `top`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Ended and lost sessions, too */
                    all?: boolean;
                    /**
                     * @description The time in which CPU is measured, such as `500ms`; of a stream, the time
                     *     between two events. From `100ms` to `10s`: others are taken for the
                     *     nearest of these
                     */
                    interval?: components["schemas"]["Span"];
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is refused, and why */
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
                /** @description It cannot now; try again */
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
        /** @description What a command-line agent tells of. */
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
        /** @description What a task began with. */
        AgentContinuity: {
            /**
             * Format: int64
             * @description The run whose state was brought back
             */
            as_of_run?: number;
            /** @description What was lost, by name */
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
             * @description How many steps can be taken back; 0: none
             */
            checkpoints: number;
            /**
             * @description What had become of its session when its id came again, until its next task has
             *     told it
             */
            continuity: components["schemas"]["AgentContinuity"];
            /**
             * Format: int64
             * @description Milliseconds since 1970
             */
            created_ms: number;
            /**
             * Format: int64
             * @description How long its thread is
             */
            entries: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970
             */
            last_activity_ms: number;
            /** @description The server's name for its model */
            model: string;
            moved_to?: components["schemas"]["MovedTo"];
            session_id: components["schemas"]["SessionId"];
            status: components["schemas"]["AgentStatus"];
            /**
             * Format: int64
             * @description How often its model has answered, in all
             */
            steps: number;
            /**
             * Format: int64
             * @description Tasks that it was given, those that were taken back or lost included
             */
            task_count: number;
            thread_id: components["schemas"]["ThreadId"];
            waiting_for?: string;
            /** @description The directory that it works in */
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
            /** @description Replace what has changed in the real directory meanwhile */
            force?: boolean;
            /** @description From the workspace, each with all that is below it; all of them when absent */
            paths?: string[] | null;
        };
        /** @description A call waits for approval: the data of the event `approve` */
        ApproveEvent: {
            call: string;
        };
        /** @description Checkpoints that a session takes by itself, before each run. */
        Auto: {
            /** @description With the files of the workspace. */
            files?: boolean;
            /**
             * Format: int32
             * @description How many of them are kept.
             */
            keep: number;
        };
        /** @description Checkpoints before each run: how many are kept, or that and files */
        AutoCheckpoints: number | components["schemas"]["AutoRequest"];
        /** @description Checkpoints before each run. */
        AutoRequest: {
            /** @description With the files of the workspace */
            files?: boolean;
            /**
             * Format: int32
             * @description How many are kept
             * @example 10
             */
            keep: number;
        };
        /** @description A run that others wait for */
        Behind: {
            /** @description Its first line, or the beginning of it */
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
         * @description How bytes are written that are not text.
         * @enum {string}
         */
        BytesEncoding: "base64";
        CallVerdict: "allowed" | {
            /** @description And what the model is told. */
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
            /** @description The files of the workspace as well */
            files?: boolean;
            /**
             * @description What to call it; `checkpoint-` and the number of the last run when absent
             * @example before-refactoring
             */
            name?: string | null;
            /** @description Wait for runs that are going, instead of refusing */
            wait?: boolean;
        };
        /** @description A point that a session can be rewound to */
        CheckpointRow: {
            /** @description The newest run that is in it */
            as_of_run: components["schemas"]["RunNo"];
            /** @description Taken before a run, by the session itself */
            auto: boolean;
            /** @description Where it was just taken */
            continuity?: components["schemas"]["Continuity"];
            created_at: string;
            /** @description Its files, if it has them */
            files?: components["schemas"]["FilesRow"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What is not in it */
            left: components["schemas"]["LeftBehind"][];
            /** @example before-refactoring */
            name: string;
        };
        /** @description What became of the session since it was last used */
        Continuity: {
            /** @enum {string} */
            status: "live";
        } | {
            /** @description The run whose state was brought back */
            as_of_run: components["schemas"]["RunNo"];
            /** @description What of the interpreters was not brought back, by name */
            lost: string[];
            /** @description Runs that were going when the keeper died */
            lost_runs: components["schemas"]["RunNo"][];
            /** @description The session before */
            previous: components["schemas"]["SessionInfo"];
            /** @enum {string} */
            status: "restored";
        } | {
            /** @description What of the interpreters was not brought back, by name */
            lost: string[];
            /** @description Runs that were going when the keeper died */
            lost_runs: components["schemas"]["RunNo"][];
            /** @description The session before */
            previous: components["schemas"]["SessionInfo"];
            /** @enum {string} */
            status: "fresh";
        };
        /** @description Cores' worth of time */
        CpuLimit: {
            held_by: string;
            /** Format: double */
            limit: number;
        };
        /** @description Whether a call may be carried out. */
        Decision: {
            allow: boolean;
            call: string;
            /** @description What the model is told when it may not */
            reason?: string | null;
        };
        /** @description Words of the model, as they come: the data of the event `delta` */
        DeltaEvent: {
            text: string;
        };
        DirectoryRequest: {
            encoding?: components["schemas"]["Encoding"] | null;
            /** @description Make those above it, and be content when it is there already */
            parents?: boolean;
            /** @example build/output */
            path: string;
        };
        /** @description Some paths of a layer */
        DiscardRequest: {
            /** @description From the workspace, each with all that is below it; all of them when absent */
            paths?: string[] | null;
        };
        /** @description Checkpoints that are gone */
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
        /** @description A store that saves are brought to. */
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
        /** @description A session that has ended */
        Ended: {
            /** @description What could not be written any more, and is missing from its files */
            lost?: string[];
            session_id: components["schemas"]["SessionId"];
            /** @example terminated */
            status: string;
        };
        /** @description Sessions that have ended */
        EndedAll: {
            /** @description Those that could not be ended */
            failed?: components["schemas"]["SessionId"][];
            /** @description What could not be written any more, and is missing from the files of these */
            lost?: string[];
            session_ids: components["schemas"]["SessionId"][];
            /** @example terminated */
            status: string;
        };
        /** @description A job of a shell that is over */
        EndedJob: {
            /** @description If that is plain from the run's text */
            command?: string;
            /**
             * Format: int32
             * @description Absent if the shell has forgotten it
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
        /** @description What is refused, and why */
        ErrorBody: {
            error: components["schemas"]["ErrorDetail"];
        };
        /** @description An error as JSON. */
        ErrorDetail: {
            /** @description Stable: programs match on it */
            code: string;
            /** @description What to do */
            hint: string;
            message: string;
        };
        /**
         * @description How it is known that a limit was met
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
            /** @description Environment variables for this run alone */
            env?: components["schemas"]["Environment"];
            /** @description Keep stdin open for `…/input` */
            interactive?: boolean;
            language?: components["schemas"]["LanguageName"] | null;
            max_output?: components["schemas"]["Size"] | null;
            no_output_timeout?: components["schemas"]["Span"] | null;
            queue_timeout?: components["schemas"]["Span"] | null;
            /** @description What the command reads on stdin; nothing when absent */
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
            /** @description How path, name and target are written when one of them is not UTF-8 */
            encoding?: components["schemas"]["BytesEncoding"];
            /** @description Permissions, such as `0644` */
            mode: string;
            /** @description When it was changed last */
            modified: string;
            name: string;
            /** @description Relative to the workspace; `.` is the workspace itself */
            path: string;
            /** Format: int64 */
            size: number;
            /** @description Where a link leads */
            target?: string;
            type: components["schemas"]["FileType"];
        };
        /** @description What a call makes of a file. */
        FileIntent: {
            /** @description SHA-256 of what will be in it. */
            after: string;
            /** @description SHA-256 of what is in the file; absent: there is none. */
            before?: string;
            /** @description The model's name for the call. */
            call: string;
        };
        /** @description What is in a directory */
        FileList: {
            /** @description Each directory before what is in it, in the order of the names */
            entries: components["schemas"]["FileEntry"][];
            /** @description There are more than were asked for */
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
            /** @description Some of those that were left out */
            examples: components["schemas"]["LeftBehind"][];
            /** Format: int64 */
            files: number;
            /** Format: int64 */
            left_out: number;
            /**
             * Format: int64
             * @description What had to be read and stored for it
             */
            stored_bytes: number;
        };
        /**
         * @description What a path stands for
         * @enum {string}
         */
        FileType: "file" | "directory" | "symlink" | "other";
        /** @description New sessions with the state of another */
        Forked: {
            /** @description The newest run of the original that they have seen */
            as_of_run: components["schemas"]["RunNo"];
            continuity?: components["schemas"]["Continuity"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What they do not have */
            left: components["schemas"]["LeftBehind"][];
            session_ids: components["schemas"]["SessionId"][];
            sessions: components["schemas"]["ForkRow"][];
        };
        /** @description Where a fork comes from. */
        ForkedFrom: {
            as_of_run: components["schemas"]["RunNo"];
            session_id: components["schemas"]["SessionId"];
        };
        /** @description Forks to make. */
        ForkRequest: {
            /**
             * Format: int32
             * @description How many; 1 when absent
             * @default 1
             * @example 3
             */
            count?: number;
            /**
             * @description End them when the calling process has ended, however that ends, as for a new
             *     session; when absent, forks without a name end with what their original ends with
             */
            ends_with_caller?: boolean | null;
            files?: ("share" | "copy") & Record<string, unknown>;
            /** @description What to call them */
            name?: string | null;
            /** @description Wait for runs that are going, instead of refusing */
            wait?: boolean;
        };
        ForkRow: {
            session_id: components["schemas"]["SessionId"];
            work_dir: string;
        };
        /** @description The server is there */
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
            /** @description What it is, if it is no run. */
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
             * @description What it had written when it ended.
             */
            stdout_bytes?: number;
            timed_out?: boolean;
            timestamp: string;
        };
        /** @description An agent that goes on here */
        ImportedAgent: {
            agent: components["schemas"]["AgentInfo"];
            session: components["schemas"]["Restored"];
        };
        /** @description Input that was given to a run */
        Input: {
            run: components["schemas"]["RunNo"];
            /**
             * Format: int64
             * @description Bytes that it has not read yet
             */
            unread: number;
        };
        InputRequest: {
            /** @description Text for the run's stdin */
            data?: string;
            encoding?: components["schemas"]["Encoding"] | null;
            /** @description There will be no more */
            eof?: boolean;
        } & ({
            /** @enum {string|null} */
            encoding?: "utf8" | null;
        } | {
            data?: string;
        });
        /** @description What was interrupted */
        Interrupted: {
            /** @description Whether something was running */
            interrupted: boolean;
            run?: components["schemas"]["RunNo"] | null;
        };
        InterruptRequest: {
            /**
             * Format: int64
             * @description The run to interrupt; whatever is running when absent
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
        /** @description A job: a process in the background, with all that descends from it */
        JobRow: {
            command: string;
            /**
             * Format: int64
             * @description Processor time of all its processes, ended ones included
             */
            cpu_ms: number;
            /**
             * Format: double
             * @description On average since it was started; not of one that is younger than a second
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
        /** @description Changes that were brought to the real directory */
        LayerApplied: {
            applied: string[];
            /** @description What was left alone, and why */
            skipped: components["schemas"]["SkippedChange"][];
        };
        /** @description A path that differs from the real directory */
        LayerChange: {
            /** @description It is not text, or too large to be shown */
            binary: boolean;
            change: components["schemas"]["ChangeSort"];
            /**
             * @description What became of it in the real directory since the session took it over:
             *     `apply` refuses it
             */
            conflict?: string;
            /** Format: int64 */
            deletions: number;
            /** @description With `renamed`: where it was */
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
            /** @description From the workspace; in quotes, as git writes it, when it is not plain text */
            path: string;
            /**
             * Format: int64
             * @description Bytes in the layer
             */
            size?: number;
            /** @description What the session has there; of what it deleted, what was there */
            type: components["schemas"]["FileType"];
        };
        /** @description What a session has changed in its layer */
        LayerDiff: {
            /** @description Each path that differs, in order */
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
            /** @description What could not be looked at */
            skipped: components["schemas"]["SkippedChange"][];
            /** @description There was more text than is answered: ask for some paths */
            truncated: boolean;
        };
        /** @description Changes that were dropped */
        LayerDiscarded: {
            discarded: string[];
            /** @description What was left alone, and why */
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
             * @description At the last look, which is taken as it is written to
             */
            used_bytes?: number | null;
        };
        /** @description Something that could not be carried. */
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
             * @description Without what the system would give back at once; null where nobody counts
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
             * @description How long the server wants to be left alone.
             */
            retry_after_ms?: number | null;
        };
        /**
         * @description What kind of failure it was: a stable code.
         * @enum {string}
         */
        ModelFault: "bad_key" | "unknown_model" | "bad_request" | "too_long" | "rate_limited" | "unavailable" | "unreachable" | "bad_certificate" | "broken" | "nonsense" | "crashed" | "moved";
        /**
         * @description The formats that are spoken.
         * @enum {string}
         */
        ModelFormat: "chat-completions" | "responses" | "messages";
        /** @description What a model has answered. */
        ModelReply: {
            blocks: components["schemas"]["ReplyBlock"][];
            /** @description The model that answered, by its own name. */
            model?: string;
            stop: components["schemas"]["ReplyStop"];
            usage?: components["schemas"]["TokenUsage"];
        };
        /** @description Where an agent has gone. */
        MovedAgent: {
            /**
             * Format: int64
             * @description The newest run that was exported, as `Sessile-As-Of-Run` said
             */
            as_of_run?: number | null;
            /**
             * Format: int64
             * @description How long its thread was when it was exported, as `Sessile-Entries` said: if it
             *     has grown since, it is not moved
             */
            entries: number;
            /** @description Its session there */
            session_id: string;
            /**
             * @description The server that has it now; shown to whoever asks for the agent here
             * @example https://sessile.example
             */
            url: string;
        };
        /** @description Where an agent has gone. */
        MovedTo: {
            /** @description Its session there. */
            session_id: string;
            /** @description The server that has it now, as whoever moved it calls it. */
            url: string;
        };
        MoveRequest: {
            encoding?: components["schemas"]["Encoding"] | null;
            from: string;
            /** @description Replace what is there */
            overwrite?: boolean;
            /** @description Its new path, not the directory that it is to be in */
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
             * @description What is to be done
             * @example Create app.py
             */
            text: string;
        };
        /** @description Something that was not carried */
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
            /** @description What the command reads on stdin */
            stdin?: string | null;
            terminal?: components["schemas"]["Terminal"] | null;
            timeout?: components["schemas"]["Span"] | null;
        };
        /** @description What a run has written from some cursor on, while it is going or later */
        Output: {
            continuity?: components["schemas"]["Continuity"];
            /**
             * @description Where to read on in both streams
             * @example 12-0
             */
            cursor: string;
            encoding?: components["schemas"]["Encodings"];
            notes?: string[];
            /** @description queued, running, exited (something may still write) or closed */
            phase?: components["schemas"]["RunPhase"];
            /** @description While it waits for its turn */
            queued?: components["schemas"]["Queued"];
            run: components["schemas"]["RunNo"];
            running: boolean;
            stderr: string;
            stdout: string;
            /** @description It is blocked in a read of its stdin, and has read all that it was given */
            waiting_for_input?: boolean;
        };
        /** @description Of one stream, or of both */
        OutputAnswer: components["schemas"]["OutputPiece"] | components["schemas"]["Output"];
        /** @description Output of one stream from some byte on */
        OutputPiece: {
            data: string;
            /** @description If the bytes are not text */
            encoding?: components["schemas"]["BytesEncoding"];
            /**
             * Format: int64
             * @description Where to read on
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
        /** @description Where a run stands that has not begun */
        Queued: {
            /**
             * @description The run that is going. Absent while the interpreter comes up, or while
             *     something is done with the session as a whole
             */
            behind?: components["schemas"]["Behind"];
            /**
             * Format: int64
             * @description 1 for the run that is next
             */
            place: number;
        };
        /** @description The server can do its work */
        Readiness: {
            /** @description `ready` */
            status: string;
        };
        /** @description What a run had to say besides its output. */
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
        /** @description What a session is to be called. */
        RenameRequest: {
            /**
             * @description 1 to 100 letters, digits, spaces and -_.:/, which do not begin with
             *     `sess_`; `null` for none
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
        /** @description A session that was made from a saved one */
        Restored: {
            /** @description The newest run that is in it */
            as_of_run: components["schemas"]["RunNo"];
            command: string;
            files?: components["schemas"]["SavedFilesRow"];
            kernels: components["schemas"]["RestoredKernel"][];
            /** @description What was not carried */
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
             * @description How many names were carried, where they are carried one by one
             */
            carried?: number | null;
            language: components["schemas"]["Language"];
            /** @description Of the interpreter, if it is known */
            version?: string | null;
        };
        /** @description What a rewind did to the workspace */
        RestoredRow: {
            /** @description The checkpoint that has the files as they were before */
            before?: string | null;
            problems: components["schemas"]["LeftBehind"][];
            /** Format: int64 */
            removed: number;
            /** Format: int64 */
            written: number;
        };
        /**
         * @description The model has failed, and is asked once more after a while: the data of the event
         *     `retry`. Words that came since the last entry do not count
         */
        RetryEvent: {
            /**
             * Format: int64
             * @description When it is asked again
             */
            after_ms: number;
            /**
             * Format: int32
             * @description The attempt that has failed: 1, 2, …
             */
            attempt: number;
            failure: components["schemas"]["ModelFailure"];
        };
        /** @description Where to go back to. */
        RewindAgent: {
            /**
             * Format: int64
             * @description The last step that still counts; 0: before the first one
             */
            step: number;
        };
        RewindRequest: {
            /**
             * @description The checkpoint
             * @example before-refactoring
             */
            checkpoint?: string | null;
            /** @description Leave the workspace as it is, though the checkpoint has its files */
            keep_files?: boolean;
            /**
             * Format: int64
             * @description Take back the last so many runs, in a session that was started with `auto`
             */
            runs?: number | null;
            /** @description Wait for runs that are going, instead of refusing */
            wait?: boolean;
        } & ({
            checkpoint?: null;
        } | {
            runs?: null;
        });
        /** @description A session that was taken back to a checkpoint */
        Rewound: {
            /** @description The newest run that the session remembers now */
            as_of_run: components["schemas"]["RunNo"];
            /** @example before-refactoring */
            checkpoint: string;
            continuity?: components["schemas"]["Continuity"];
            files?: components["schemas"]["RestoredRow"];
            kernels: components["schemas"]["CarriedKernel"][];
            /** @description What was not taken back, or not brought back */
            left: components["schemas"]["LeftBehind"][];
            /** @description The number that the rewind has in the history */
            run: components["schemas"]["RunNo"];
            /** @description The runs that were taken back */
            undone: components["schemas"]["RunNo"][];
        };
        /** @description How far an agent has gone back */
        RewoundAgent: components["schemas"]["ThreadRewind"] & {
            /** @description What became of the session; absent when nothing was done there since */
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
        /** @description A run that has finished */
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
            /** @description Jobs of a shell that have ended within this run, or since the one before */
            jobs_ended?: components["schemas"]["EndedJob"][];
            /** @description kept, restarted, restored or fresh */
            kernel: string;
            language: components["schemas"]["Language"];
            /** @description Limits of its sandbox that it has met */
            limits_met?: components["schemas"]["MetLimit"][];
            notes?: string[];
            /** @description The answer to an earlier request with the same Idempotency-Key */
            repeated?: boolean;
            /** @description The value of the last expression */
            result?: string;
            run: components["schemas"]["RunNo"];
            /** @description Always false: it tells the result from what there is of a run that is going */
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
            /** @description What it is, if it is no run: `rewind` */
            event?: string;
            /** Format: int32 */
            exit_code?: number;
            interactive?: boolean;
            interrupted?: boolean;
            language: components["schemas"]["Language"];
            /** @description Of an event */
            notes?: string[];
            /** @description queued, running, exited (something may still write) or closed */
            phase: components["schemas"]["RunPhase"];
            /** @description While it waits for its turn */
            queued?: components["schemas"]["Queued"];
            run: components["schemas"]["RunNo"];
            /** @description It has a terminal */
            terminal?: boolean;
            timed_out?: boolean;
            /** @description When it began */
            timestamp?: string | null;
            /** @description It is blocked in a read of its stdin, and has read all that it was given */
            waiting_for_input?: boolean;
        };
        /** @description A request of the `runtime` tool. */
        RuntimeRequest: {
            /** @enum {string} */
            action: "exec" | "eval" | "state" | "reset" | "history";
            /** @description With what was inherited unchanged (state) */
            all?: boolean;
            /**
             * Format: int32
             * @description If this call starts the session: checkpoints taken before runs, and kept
             */
            auto?: number;
            /** @description auto: with the workspace's files */
            auto_files?: boolean;
            /** @description The command or code (exec and eval) */
            command?: string;
            env?: {
                [key: string]: string;
            };
            language?: components["schemas"]["LanguageName"];
            /**
             * Format: int64
             * @description How many of the newest entries (history)
             */
            limit?: number;
            /**
             * Format: int64
             * @description Bytes of output in the answer; 16000 if not said
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
            /** @description Tells several sessions of one workspace apart */
            session_key?: string;
            stdin?: string;
            /**
             * Format: int64
             * @description Interrupt the command this long after it has begun; 0: never
             */
            timeout_ms?: number;
            /** @description The directory whose session is meant */
            workspace?: string;
        };
        /** @description The value of a run's last expression. */
        RunValue: {
            /** @description Richer forms by MIME type, as JSON text. */
            data_json?: string | null;
            text: string;
        };
        /** @description A sandbox, said briefly or at length. */
        SandboxChoice: boolean | components["schemas"]["PresetName"] | components["schemas"]["NewPolicy"];
        /** @description A session that was saved */
        Saved: {
            /** @description The newest run that is in it */
            as_of_run: components["schemas"]["RunNo"];
            /** Format: int64 */
            bytes: number;
            continuity?: components["schemas"]["Continuity"];
            files?: components["schemas"]["SavedFilesRow"];
            kernels: components["schemas"]["SavedKernel"][];
            /** @description What could not be carried */
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
            /** @description Some of those */
            examples: components["schemas"]["NotCarried"][];
            /** Format: int64 */
            files: number;
            /**
             * Format: int64
             * @description How many were left out
             */
            left_out: number;
            /** @description Whether they were put back */
            restored?: boolean;
            /** Format: int64 */
            symlinks: number;
        };
        SavedKernel: {
            as_of_run: components["schemas"]["RunNo"];
            /**
             * Format: int64
             * @description How many names were carried, where they are carried one by one
             */
            carried?: number;
            language: components["schemas"]["Language"];
        };
        /** @description A file to save a session to. */
        SaveRequest: {
            /** @description With the files of the session's directory */
            files?: boolean;
            /**
             * @description In a directory that may be used; a file that is there is replaced
             * @example work.sessile
             */
            path: string;
            /** @description Wait for runs that are going, instead of refusing */
            wait?: boolean;
        };
        /** @description How far saving has got. */
        SaveState: {
            as_of_run?: components["schemas"]["RunNo"] | null;
            /** @description Why the last attempt came to nothing, if it did. */
            error?: string | null;
            saved_at?: string | null;
        };
        /** @description What a terminal shows */
        ScreenAnswer: {
            cursor?: components["schemas"]["Position"] | null;
            /** @description A full-screen program has the other screen */
            is_alternate: boolean;
            /** @description Of `cells`: for each line its `spans` of characters that look alike */
            lines?: Record<string, unknown>[];
            /**
             * Format: int64
             * @description Grows with every change; not of a run that is over
             */
            revision?: number;
            run: components["schemas"]["RunNo"];
            running: boolean;
            size: components["schemas"]["ScreenSize"];
            /** @description The lines of the screen, without blanks at their ends */
            text: string;
            title: string;
            /**
             * @description What became of the wait, if there was one: matched, settled, ended (the
             *     run is over, and what was waited for did not come) or timed_out
             */
            wait?: string;
            /** @description It is blocked in a read of its terminal, and has read all that was typed */
            waiting_for_input: boolean;
        };
        /** @description A terminal's size in characters */
        ScreenSize: {
            /** Format: int32 */
            cols: number;
            /** Format: int32 */
            rows: number;
        };
        /** @description One event of a stream, as `text/event-stream` has it */
        ServerSentEvent: {
            /** @description JSON */
            data: string;
            event?: string;
            /** @description Where a client that comes back goes on, in `Last-Event-ID` */
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
            /** @description Only runs keep it from being idle: not jobs, nor who looks at it. */
            idle_without_runs?: boolean;
            /** Format: int32 */
            keeper_pid?: number | null;
            language: components["schemas"]["Language"];
            last_executed_at?: string | null;
            /** @description What could not be written when it ended, and so is missing from its files. */
            lost_at_end?: string[];
            /** Format: int64 */
            max_history: number;
            /**
             * Format: int64
             * @description Runs that may wait, if it was limited.
             */
            max_queue?: number | null;
            /** @description What its maker calls it. */
            name?: string | null;
            /** @description What of its sandbox is weaker than it was asked for, if anything. */
            notes?: string[];
            /** Format: int64 */
            output_cap: number;
            /** @description The token that it was made with, if it came over the network. */
            owner?: string | null;
            restored_from?: components["schemas"]["SessionId"] | null;
            /** @description The policy that it is confined by, with nothing left open. */
            sandbox?: Record<string, unknown> | null;
            session_id: components["schemas"]["SessionId"];
            /** @description The key by which it is one of several of its workspace. */
            session_key?: string | null;
            status: components["schemas"]["SessionStatus"];
            work_dir: string;
            /** @description Which workspace's and key's default session this is, if it is one. */
            workspace?: string | null;
        };
        SessionLimits: {
            output?: components["schemas"]["Size"] | null;
        };
        /** @description Some sessions, newest first */
        SessionPage: {
            next?: components["schemas"]["SessionId"] | null;
            sessions: components["schemas"]["SessionInfo"][];
        };
        /** @enum {string} */
        SessionStatus: "starting" | "active" | "terminated" | "lost" | "unknown";
        /** @description A signal that was sent to a run */
        Signalled: {
            /**
             * Format: int64
             * @description How many got it
             */
            processes: number;
            run: components["schemas"]["RunNo"];
        };
        /** @description A signal that was sent to a job */
        SignalledJob: {
            /** Format: int32 */
            pid: number;
            /**
             * Format: int64
             * @description How many got it
             */
            processes: number;
        };
        /** @description A signal: "INT", "TERM", "KILL", …, or its number */
        SignalName: string | number;
        SignalRequest: {
            signal: components["schemas"]["SignalName"];
        };
        /** @description Bytes: 1048576, "1MiB" or "64K" (1024 of a unit are one of the next) */
        Size: number | string;
        /** @description A path that was left alone */
        SkippedChange: {
            path: string;
            reason: string;
        };
        /** @description Something in an archive that was left out */
        SkippedFile: {
            encoding?: components["schemas"]["BytesEncoding"];
            path: string;
            reason: string;
        };
        /** @description A length of time: "30s", "500ms", "2h", or seconds. More than a year is taken for a year */
        Span: string | number;
        /** @description An agent to make: a session with a thread, and a model that works there. */
        StartAgent: {
            /** @description Tools whose calls wait for approval; `*` stands for all */
            approve?: string[];
            /**
             * Format: int32
             * @description How many steps can be taken back, files included; 0: none. When absent 10, with
             *     the files of the workspace unless they are many
             */
            checkpoints?: number | null;
            /** @description Save its session in idle time; as the server was told when absent */
            durable?: boolean | null;
            /** @description Environment variables of its session */
            env?: components["schemas"]["Environment"];
            /** @description What the model is told before everything else */
            instructions?: string | null;
            /** @description Which of the server's models; not needed where there is one only */
            model?: string | null;
            /** @description A name for its session */
            name?: string | null;
            sandbox?: components["schemas"]["SandboxChoice"] | null;
            /** @description A session that is there; without it, one is started */
            session?: string | null;
            /** @description The directory that it works in */
            workspace?: string | null;
        };
        /** @description A session that was started */
        Started: {
            command: string;
            /** @description What of its sandbox is weaker than it was asked for */
            notes?: string[];
            session_id: components["schemas"]["SessionId"];
            status: string;
            work_dir: string;
        };
        StartSession: {
            auto?: components["schemas"]["AutoCheckpoints"] | null;
            command_timeout?: components["schemas"]["Span"] | null;
            /** @description The directory to start in; within the workspace if it is relative */
            cwd?: string | null;
            /**
             * @description Save it in idle time, so that it goes on after a reboot; as the server
             *     was told when absent
             */
            durable?: boolean | null;
            /**
             * @description End it, and its forks without a name, when the calling process has ended, however that
             *     ends: for programs on the same machine, over the local server's socket
             */
            ends_with_caller?: boolean;
            /** @description Environment variables */
            env?: components["schemas"]["Environment"];
            /**
             * @description A session to begin with the state of, such as `sess_…`, or the name of a
             *     pool: imports are done, variables are set. History, run numbers, directory
             *     and settings are the new one's own
             */
            from?: string | null;
            idle_timeout?: components["schemas"]["Span"] | null;
            /** @description Count only runs for `idle_timeout`: neither jobs nor who looks at it */
            idle_without_runs?: boolean;
            /** @description Limits of the session */
            limits?: components["schemas"]["SessionLimits"];
            /**
             * Format: int64
             * @description Runs to keep in the history
             */
            max_history?: number | null;
            /** @description What to call it */
            name?: string | null;
            sandbox?: components["schemas"]["SandboxChoice"] | null;
            /**
             * @description bash, sh, dash, zsh, python3 or node, or the path of one
             * @example bash
             */
            shell?: string | null;
            /** @description The directory that the session belongs to */
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
        /** @description What was kept of a session before a step. */
        StepCheckpoint: {
            /** @description Why none could be taken. */
            error?: string;
            /** @description With the files of the workspace. */
            files?: boolean;
            /** @description The session's name for it; absent when none could be taken. */
            name?: string;
            /** Format: int64 */
            step: number;
        };
        Taken: {
            /** @description Always true: it was taken */
            accepted: boolean;
        };
        TaskBegun: {
            /** @description What had become of the session */
            continuity: components["schemas"]["AgentContinuity"];
            task: components["schemas"]["TaskNo"];
        };
        /** @enum {string} */
        TaskEnded: "done" | "limit" | "cancelled" | "failed" | "refused";
        /** @description How a task ended. */
        TaskEnding: {
            /** @enum {string} */
            ended: "done";
            /** @description The model's answer was too long. */
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
        /** @description What has become of a task */
        TaskInfo: {
            /** @description What had become of the session when the task began, or meanwhile */
            continuity: components["schemas"]["AgentContinuity"];
            ended?: components["schemas"]["TaskEnded"];
            failure?: components["schemas"]["ModelFailure"];
            /** @description The model's answer was too long, and is cut off */
            is_cut_off?: boolean;
            limit?: components["schemas"]["TaskLimit"];
            /** @description What the model said in the end */
            output?: string;
            running: boolean;
            session_id: components["schemas"]["SessionId"];
            /** @description Steps, tokens and cost, when it has ended */
            spent?: components["schemas"]["TaskSpent"];
            /** @description A rewind has taken back at least a part of it */
            taken_back?: boolean;
            task: components["schemas"]["TaskNo"];
            /** @description What was to be done */
            text: string;
            thread_id: components["schemas"]["ThreadId"];
        };
        /**
         * @description Which limit ended a task.
         * @enum {string}
         */
        TaskLimit: "steps" | "tokens" | "time" | "cost";
        TaskLimits: {
            /**
             * Format: int64
             * @description The conversation is summed up when a request has had more tokens than this.
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
             * @description How often the model is asked.
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
             * @description Tokens that go to the model and come from it, in all.
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
        /** @description What a task has used so far. */
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
             * @description Tasks of threads before this one, which were lost: numbers go on.
             */
            earlier_tasks?: number;
            forked_from?: components["schemas"]["ThreadId"] | null;
            /** Format: int32 */
            format: number;
            thread: components["schemas"]["ThreadId"];
            /** @enum {string} */
            type: "created";
        } | {
            /** @description What had become of the session; absent: it was live. */
            continuity?: components["schemas"]["AgentContinuity"];
            /** @description The caller's name for it. */
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
             * @description The number that this has in the session's history.
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
             * @description The number that this has in the session's history.
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
        /** @description The data of an event of a thread: `event` is its `type`, and `id` its `entry` */
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
             * @description There are more: ask with `after` set to this
             */
            next?: number;
        };
        /** @description How far a thread goes back. */
        ThreadRewind: {
            /** @description The session's checkpoint; absent when nothing was done there since. */
            checkpoint?: string;
            /**
             * Format: int64
             * @description The last entry that still counts.
             */
            kept: number;
            /**
             * Format: int64
             * @description The last step that still counts; 0: none does.
             */
            step: number;
            /** @description Steps that are taken back. */
            steps: number[];
            /** @description Tasks that are taken back as a whole. */
            tasks: components["schemas"]["TaskNo"][];
        };
        /** @description What a million tokens cost. */
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
             * @description All tokens of the request, cached ones included.
             * @default 0
             */
            input_tokens?: number;
            /**
             * Format: int64
             * @default 0
             */
            output_tokens?: number;
        };
        /** @description What a tool is called with. Models write JSON, mostly. */
        ToolArguments: {
            json: unknown;
        } | {
            /**
             * @description Text that is no JSON object. It is kept, because the conversation is repeated
             *     as it was.
             */
            malformed: string;
        };
        /** @description A call of a tool, as the model wants it. */
        ToolCall: {
            /** @description The model's own name for it. */
            id: string;
            input: components["schemas"]["ToolArguments"];
            tool: string;
        };
        /** @description What a call has come to. */
        ToolOutcome: {
            /** @description The model's name for the call. */
            call: string;
            is_error?: boolean;
            /**
             * Format: int64
             * @description The run of the session that it led to.
             */
            run?: number | null;
            text: string;
        };
        /** @description What sessions are doing */
        Top: {
            sessions: components["schemas"]["TopRow"][];
        };
        /** @description What a session is doing */
        TopRow: components["schemas"]["Usage"] & {
            /**
             * Format: int64
             * @description Since its last run, if none is going.
             */
            idle_ms?: number | null;
            /** Format: int32 */
            keeper_pid?: number | null;
            kernels: components["schemas"]["KernelStatus"][];
            name?: string | null;
            /** Format: int64 */
            queued: number;
            /** @description Of a session in a sandbox: what it may use, and uses. */
            resources?: components["schemas"]["LimitsView"];
            running: components["schemas"]["TopRun"][];
            session_id: components["schemas"]["SessionId"];
            state: components["schemas"]["TopState"];
            work_dir: string;
            workspace?: string | null;
        };
        /** @description A run that is going. */
        TopRun: {
            /** @description Its beginning, if it is long. */
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
            /** @description Where, in the session's directory */
            file: string;
            /** Format: int64 */
            head_bytes: number;
            /**
             * Format: int64
             * @description What is kept on disk
             */
            stored_bytes: number;
            /** Format: int64 */
            tail_bytes: number;
            /** Format: int64 */
            total_bytes: number;
        };
        /** @description What was left out of long streams */
        Truncations: {
            stderr?: components["schemas"]["Truncated"];
            stdout?: components["schemas"]["Truncated"];
        };
        UndoRequest: {
            /** @description Leave the workspace as it is, though the checkpoint has its files */
            keep_files?: boolean;
            /** @description Wait for runs that are going, instead of refusing */
            wait?: boolean;
        };
        /** @description What became of an archive */
        UnpackedArchive: {
            /**
             * Format: int64
             * @description Of files
             */
            bytes: number;
            /** Format: int64 */
            directories: number;
            /** Format: int64 */
            files: number;
            /** Format: int64 */
            links: number;
            /**
             * @description What was left out, the first hundred: links that lead out of the workspace,
             *     devices, FIFOs
             */
            skipped: components["schemas"]["SkippedFile"][];
            /** Format: int64 */
            skipped_count: number;
        };
        /** @description What a tree of processes uses. */
        Usage: {
            /**
             * Format: double
             * @description Of one CPU, since the look before; none at the first.
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
