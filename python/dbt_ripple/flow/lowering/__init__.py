"""One query's parse tree -> the plain query of `flow.ir`, one module for each clause and kind of expression.

They are the parts of one class, `flow.lowering.query.Lowering`, which walks over the tree once.
"""
