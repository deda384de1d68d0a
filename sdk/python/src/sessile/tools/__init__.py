"""Sessions as tools of frameworks for agents. Each module needs its framework installed, and
nothing else of this package does.

========================  ====================================================
``tools.openai``          function tools, and the Agents SDK
``tools.anthropic``       a tool definition, and a handler for the bash tool
``tools.langchain``       LangChain and LangGraph
``tools.pydantic_ai``     PydanticAI
``tools.smolagents``      a Python executor
========================  ====================================================
"""
