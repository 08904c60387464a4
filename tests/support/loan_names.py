"""The models of loan_table.py by name, for parameters of tests: importing this needs nothing."""

BOOSTED = ("xgboost", "lightgbm", "catboost", "xgboost native", "lightgbm native", "catboost native")
PIPELINES = ("LogisticRegression", "RandomForestClassifier")
