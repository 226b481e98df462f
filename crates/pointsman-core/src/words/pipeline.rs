//! Sentences about plans: what is wrong with a file, what to do about it, why a run ended.

/// Everything that the check and the run of a pipeline say, as fragments like those of every error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Sentence {
    #[error("the pipeline has no {0} node")]
    MissingEndNode(String),
    #[error("add a node with `shape={0}`")]
    AddNodeWithShape(String),
    #[error("a second {0} node; the first is `{1}` on line {2}")]
    SecondEndNode(String, String, String),
    #[error("a pipeline has exactly one {0} node")]
    ExactlyOneEndNode(String),
    #[error("an edge leads to the start node `{0}`")]
    EdgeLeadsToStartNode(String),
    #[error("lead it to the first node of the work")]
    LeadToFirstNodeWork,
    #[error("an edge leaves the exit node `{0}`")]
    EdgeLeavesExitNode(String),
    #[error("nothing comes after the exit")]
    NothingComesAfterExit,
    #[error("no node `{0}` is declared")]
    NoNodeDeclared(String),
    #[error("did you mean `{0}`?")]
    DidYouMean(String),
    #[error("declare it, with its handler")]
    DeclareWithItsHandler,
    #[error("it becomes a task whose only text is its name; declare it with a prompt")]
    UndeclaredBecomesTask,
    #[error("no edge leads to or from `{0}`")]
    NoEdgeLeadsToOrFrom(String),
    #[error("connect or remove it")]
    ConnectOrRemove,
    #[error("`{0}` cannot be reached from the start")]
    CannotBeReachedFromStart(String),
    #[error("add an edge that leads to it")]
    AddEdgeThatLeadsTo,
    #[error("the exit cannot be reached from `{0}`")]
    ExitCannotBeReachedFrom(String),
    #[error("add an edge that leads onwards")]
    AddEdgeThatLeadsOn,
    #[error("there is no node `{0}` to go back to")]
    NoSuchRetryTarget(String),
    #[error("a retry target cannot be the exit")]
    RetryTargetCannotBeExit,
    #[error("name a node of the work")]
    NameNodeWork,
    #[error("the goal gate `{0}` has nowhere to go back to; if the gate fails, the run fails")]
    GoalGateWithoutTarget(String),
    #[error("if the gate `{0}` fails, the run fails")]
    GateEndsRun(String),
    #[error("add a diamond after it, a `condition=fail` edge or a `retry_target`")]
    AddFailureRoute,
    #[error("no edge of `{0}` can be followed after a success")]
    NoEdgeAfterSuccess(String),
    #[error("add an edge without a condition")]
    AddEdgeWithoutCondition,
    #[error("only one edge of `{0}` is followed: the one to `{1}`, which comes first by name")]
    OnlyOneEdgeFollowed(String, String),
    #[error("put a `component` node between them to run them in parallel")]
    PutFanOutBetween,
    #[error("an edge of the diamond `{0}` has no condition")]
    DiamondEdgeWithoutCondition(String),
    #[error("add `condition=pass`, `fail` or `partial`")]
    AddCondition,
    #[error("the diamond `{0}` has no edge for `{1}`")]
    DiamondHasNoEdgeFor(String, String),
    #[error("add an edge with `condition={0}`")]
    AddEdgeWithCondition(String),
    #[error("`{0}` has no `bead_id`, so a new issue is filed for it")]
    NoBeadId(String),
    #[error("add `bead_id` or `issue` to use an existing one")]
    AddBeadId,
    #[error("no gate follows `{0}`, so only its review judges the work")]
    NoGateBehind(String),
    #[error("add a hexagon after it")]
    AddHexagonBehind,
    #[error("these nodes follow each other forever: {0}")]
    EndlessCircle(String),
    #[error("give an edge of the circle a condition")]
    GiveCircleCondition,
    #[error("a condition has at most {0} clauses")]
    TooManyClauses(String),
    #[error("a clause is missing next to `&&`")]
    ClauseMissingBeside,
    #[error(
        "`{0}` is not a condition; write `pass`, `fail`, `partial`, or a comparison such as `outcome=success`"
    )]
    NoCondition(String),
    #[error("`{0}` is not a value; a clause has one `=` or `!=`, and clauses are joined by `&&`")]
    NoConditionValue(String),
    #[error("no outcome is called `{0}`; use one of {1}")]
    UnknownOutcome(String, String),
    #[error("`{0}` cannot be compared; use `outcome`, `preferred_label` or `context.NAME`")]
    UnknownConditionKey(String),
    #[error("a pipeline has at most {0} nodes")]
    TooManyNodes(String),
    #[error("a pipeline has at most {0} edges")]
    TooManyEdges(String),
    #[error("a name has at most {0} bytes")]
    NameTooLong(String),
    #[error(
        "the attributes of all nodes and edges, inherited ones included, have at most {0} bytes together"
    )]
    TooManyAttributes(String),
    #[error("the prompt of `{0}` has more than {1} bytes once `$goal` is filled in")]
    PromptTooLong(String, String),
    #[error("the plan is too large to draw here: nodes plus the ranks that edges cross must be at most {0}")]
    TooLargeToDraw(String),
    #[error("{0} more findings are not shown")]
    MoreFindings(String),
    #[error("the byte 0x{0} is not UTF-8")]
    NotUtf8(String),
    #[error("save the file as UTF-8")]
    SaveFileAsUtf8,
    #[error("the file has {0} bytes; a pipeline has at most {1}")]
    FileTooLarge(String, String),
    #[error("a NUL byte has no meaning in a DOT file")]
    NulByte,
    #[error("this graph is undirected")]
    UndirectedGraph,
    #[error("a pipeline needs directed edges: write `digraph`")]
    WriteDigraph,
    #[error("a second graph begins here")]
    SecondGraphBeginsHere,
    #[error("a pipeline file has exactly one graph")]
    OneGraphPerFile,
    #[error("this `{{` is never closed")]
    BraceNeverClosed,
    #[error("a node named like a keyword needs quotes")]
    QuoteKeyword,
    #[error("attributes behind a subgraph have no effect")]
    AttributesWithoutEffect,
    #[error("write them into the subgraph, as `node [...]` or `graph [...]`")]
    WriteIntoSubgraph,
    #[error("subgraphs are nested more than {0} deep")]
    SubgraphsTooDeep(String),
    #[error("this `[` is never closed")]
    BracketNeverClosed,
    #[error("every attribute has a value: `{0}=...`")]
    EveryAttributeHasValue(String),
    #[error("Graphviz reads `{0}` as two words")]
    GraphvizReadsAsTwoWords(String),
    #[error("write \"{0}\" if it is a name")]
    WriteQuotedName(String),
    #[error("`{0}` is not supported")]
    NotCarriedOut(String),
    #[error("a {0} has no `{1}`")]
    UnknownAttribute(String, String),
    #[error("Pointsman does not know `{0}`; it is kept and ignored")]
    MeaninglessAttribute(String),
    #[error("the style sheet names a node `{0}` that does not exist")]
    StyleSheetNamesNobody(String),
    #[error("no handler is called `{0}`")]
    NoHandlerCalled(String),
    #[error("the shape `{0}` does not stand for `{1}`")]
    ShapeDoesNotStandFor(String, String),
    #[error("change the shape or the handler")]
    ChangeShapeOrHandler,
    #[error("the shape `{0}` does not stand for any work")]
    ShapeStandsForNoWork(String),
    #[error("add `type=` or `handler=`")]
    AddTypeOrHandler,
    #[error("the tool node `{0}` has no command")]
    ToolNodeHasNoCommand(String),
    #[error("add `command=` or `tool_command=`")]
    AddCommandOrToolCommand,
    #[error("`{0}` has neither a prompt nor a label, so an agent would see only its name")]
    NeitherPromptNorLabel(String),
    #[error("`{0}` is not an issue number")]
    NoIssueNumber(String),
    #[error("no gate is called `{0}`; use technical, business, e2e or manual")]
    UnknownGate(String),
    #[error("two choices are called `{0}`")]
    TwoChoicesAreCalled(String),
    #[error("the key of `{0}` is also used by another choice")]
    ChoiceKeyUsedTwice(String),
    #[error("write it as `[K] label`")]
    WriteChoiceKey,
    #[error("no edge leads to the default choice `{0}`")]
    NoSuchDefaultChoice(String),
    #[error("the join policy `{0}` is not supported")]
    JoinPolicyNotCarriedOut(String),
    #[error("the error policy `{0}` is not supported")]
    ErrorPolicyNotCarriedOut(String),
    #[error("use `continue` or `fail_fast`")]
    UseContinueOrFailFast,
    #[error("`{0}` is not a number of branches")]
    NoNumberBranches(String),
    #[error("a child pipeline always starts when its node is reached")]
    ChildAlwaysStarts,
    #[error("`{0}` does not name a child pipeline")]
    NamesNoChildPipeline(String),
    #[error("a child pipeline is a file below the directory of this one")]
    ChildOutsideDirectory,
    #[error("the weight `{0}` is not a whole number")]
    WeightNoWholeNumber(String),
    #[error("no status is called `{0}`; use one of {1}")]
    UnknownStatus(String, String),
    #[error("the fidelity `{0}` is not supported")]
    FidelityNotCarriedOut(String),
    #[error("nodes of one `thread_id` continue a conversation; others begin a new one")]
    UseThreadId,
    #[error("`{0}` must be true or false, not `{1}`")]
    NotTrueOrFalse(String, String),
    #[error("`{0}` must be a number from 0 to {1}")]
    NumberOutOfRange(String, String),
    #[error("`{0}` is not a time-out; write seconds, or `900s`, `15m`, `2h`, `1d`")]
    NoTimeout(String),
    #[error("send the edge to the first node of the loop instead")]
    SendEdgeToLoop,
    #[error("use the agent's own hooks")]
    UseAgentHooks,
    #[error("a child pipeline reports by itself; leave this out")]
    ChildReportsByItself,
    #[error("limit the child by `timeout`")]
    LimitChildByTimeout,
    #[error("put the condition into the child pipeline")]
    PutConditionIntoChildPipeline,
    #[error("a child pipeline always runs to its end; leave this out")]
    ChildRunsToItsEnd,
    #[error("write the condition on the edges")]
    WriteConditionOnEdges,
    #[error("Pointsman always waits for branches")]
    BranchesAreAlwaysWaitedFor,
    #[error("the snapshot has version {0}; this program reads version {1}")]
    OtherSnapshotVersion(String, String),
    #[error("it ended without a result")]
    EndedWithoutResult,
    #[error("no attempts are left")]
    NoTriesAreLeft,
    #[error("a person said no")]
    PersonSaidNo,
    #[error("the run ended before it reached its exit")]
    EndedBeforeExit,
    #[error("; the last time: {0}")]
    LastTime(String),
    #[error("`{0}` was entered {1} times without progress{2}")]
    EnteredTooOften(String, String, String),
    #[error("no edge of `{0}` can be followed{1}")]
    NoEdgeCanBeFollowed(String, String),
    #[error("`{0}` failed, and no edge follows its failure{1}")]
    FailedWithoutRoute(String, String),
    #[error("the goal gate `{0}` did not succeed, and there is nowhere to go back to")]
    GoalGateMissed(String),
    #[error("`--` is an edge of an undirected graph")]
    UndirectedEdge,
    #[error("a pipeline is a `digraph`; write `->`")]
    WriteDirectedEdge,
    #[error("this comment never ends")]
    CommentNeverEnds,
    #[error("this quoted text never ends")]
    QuotedTextNeverEnds,
    #[error("this HTML text never ends")]
    HtmlTextNeverEnds,
    #[error("every `<` in it needs its `>`")]
    CloseEveryTag,
    #[error("{0} has no meaning here")]
    StrayCharacter(String),
    #[error("put names and values that are more than letters, digits and `_` into double quotes")]
    QuoteOddNames,
    #[error("a style sheet has at most {0} rules")]
    TooManyStyleRules(String),
    #[error("a rule has the form `SELECTOR {{ NAME: VALUE; }}`")]
    StyleRuleForm,
    #[error("`{0}` selects nothing; use `*`, `.class` or `#node`")]
    NoSelector(String),
    #[error("`{0}` is not a declaration; write `NAME: VALUE`")]
    NoStyleDeclaration(String),
    #[error("a style sheet knows llm_model, llm_provider and reasoning_effort, not `{0}`")]
    UnknownStyleProperty(String),
    #[error("`{0}` is not an effort; use low, medium or high")]
    NoEffort(String),
    #[error("`{0}` has no value")]
    StyleWithoutValue(String),
}

impl From<Sentence> for String {
    fn from(sentence: Sentence) -> Self {
        sentence.to_string()
    }
}
